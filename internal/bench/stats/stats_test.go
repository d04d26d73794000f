package stats

import (
	"math"
	"testing"
)

func TestQuantile(t *testing.T) {
	v := []float64{4, 1, 3, 2} // unsorted on purpose; it must stay so
	for _, c := range []struct{ q, want float64 }{
		{0, 1}, {1, 4}, {0.5, 2.5}, {1.0 / 3, 2}, {-1, 1}, {2, 4},
	} {
		if got := Quantile(v, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Quantile(%v) = %v, want %v", c.q, got, c.want)
		}
	}
	if v[0] != 4 {
		t.Error("Quantile sorted its argument")
	}
	if !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("no samples must not look like a number")
	}
	if got := Median([]float64{7}); got != 7 {
		t.Errorf("Median of one sample = %v", got)
	}
}

func TestQuantileP99OfMany(t *testing.T) {
	v := make([]float64, 101)
	for i := range v {
		v[i] = float64(i)
	}
	if got := Quantile(v, 0.99); got != 99 {
		t.Errorf("p99 = %v, want 99", got)
	}
}

// A machine that is three times slower during one repetition must not move the
// ratio, although it moves both medians.
func TestRatioIsPairwise(t *testing.T) {
	pairs := []Pair{{90, 100}, {30, 33.333333333}, {180, 200}, {9, 10}}
	if got := Ratio(pairs); math.Abs(got-0.9) > 1e-6 {
		t.Errorf("Ratio = %v, want 0.9", got)
	}
	if got := Ratio([]Pair{{5, 0}, {8, 4}}); got != 2 {
		t.Errorf("Ratio with an empty baseline = %v, want 2", got)
	}
	if !math.IsNaN(Ratio(nil)) {
		t.Error("no pairs must not look like a ratio")
	}
}

func TestColumns(t *testing.T) {
	p, b := Columns([]Pair{{1, 2}, {3, 4}})
	if len(p) != 2 || p[1] != 3 || b[0] != 2 {
		t.Errorf("Columns = %v, %v", p, b)
	}
}
