package stats

import (
	"math"
	"slices"
)

// Quantile returns the q-quantile of v (0 is the least, 1 the greatest), by
// linear interpolation between the two nearest ranks. Without samples it is NaN.
func Quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	x := min(max(q, 0), 1) * float64(len(s)-1)
	i := int(x)
	if i == len(s)-1 {
		return s[i]
	}
	return s[i] + (x-float64(i))*(s[i+1]-s[i])
}

// Median is the 0.5-quantile.
func Median(v []float64) float64 { return Quantile(v, 0.5) }

// Pair is one repetition: both servers measured right after one another, so
// that what else the machine did weighs on both.
type Pair struct {
	Ptyd     float64 `json:"ptyd"`
	Baseline float64 `json:"baseline"`
}

// Ratio is the median over the pairs of ptyd/baseline. A ratio within a pair
// survives a machine that is slower for a minute; a ratio of medians does not.
// Pairs whose baseline is not positive say nothing and are left out.
func Ratio(pairs []Pair) float64 {
	var r []float64
	for _, p := range pairs {
		if p.Baseline > 0 {
			r = append(r, p.Ptyd/p.Baseline)
		}
	}
	return Median(r)
}

// Columns splits pairs into ptyd's and the baseline's samples.
func Columns(pairs []Pair) (ptyd, baseline []float64) {
	for _, p := range pairs {
		ptyd = append(ptyd, p.Ptyd)
		baseline = append(baseline, p.Baseline)
	}
	return ptyd, baseline
}
