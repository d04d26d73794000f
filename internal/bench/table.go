package bench

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ptyd/ptyd/internal/bench/stats"
)

// Table is the report for people: a Markdown table whose columns also line up
// on a terminal, and the lines that say where it was measured.
func (rep *Report) Table() string {
	name := "ptyd"
	if rep.SelfCheck {
		name = "baseline again"
	}
	lines := [][]string{{"", name, "baseline", "ratio", "bar", ""}}
	for _, r := range rep.Rows {
		if r.Error != "" {
			lines = append(lines, []string{r.Title, "", "", "", r.Bar, r.notMeasured()})
			continue
		}
		base := number(r.Baseline)
		if r.Alone {
			base = ""
		}
		lines = append(lines, []string{r.Title, number(r.Ptyd), base, r.ratio(), r.Bar, r.verdict()})
	}
	return markdown(lines) + "\n" + rep.Source()
}

// Source tells date, machine and version, and how to read the table.
func (rep *Report) Source() string {
	s := fmt.Sprintf("Measured %s on %s, %d cores, Linux %s", rep.Date.Format("2006-01-02 15:04 UTC"), rep.Machine.CPU, rep.Machine.Cores, rep.Machine.Kernel)
	if rep.Version != "" {
		s += ", ptyd " + rep.Version
	}
	s += ".\nThe baseline is a bare terminal → WebSocket server in the same run; ratios are medians of pairs (least–greatest).\n"
	if rep.Others >= calmBelow {
		s += fmt.Sprintf("Meanwhile other programs kept %s of %d cores busy: do not trust small differences.\n", number(rep.Others), rep.Machine.Cores)
	}
	if rep.Short {
		s += "A short run: more noise than usual.\n"
	}
	return s
}

// ratio shows the median and how far the pairs lie apart.
func (r Row) ratio() string {
	if r.Ratio == nil {
		return ""
	}
	if len(r.Pairs) < 2 {
		return number(*r.Ratio)
	}
	var all []float64
	for _, p := range r.Pairs {
		if p.Baseline > 0 {
			all = append(all, p.Ptyd/p.Baseline)
		}
	}
	return fmt.Sprintf("%s (%s–%s)", number(*r.Ratio), number(stats.Quantile(all, 0)), number(stats.Quantile(all, 1)))
}

func (r Row) verdict() string {
	switch {
	case r.Pass == nil:
		return ""
	case *r.Pass:
		return "pass"
	}
	return "FAIL"
}

// notMeasured says so, and why where that is no failure.
func (r Row) notMeasured() string {
	if r.LeftOut {
		return r.Error
	}
	return "not measured"
}

// number shows x with three digits that mean something.
func number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "?"
	}
	s := fmt.Sprintf("%.2f", x)
	switch a := math.Abs(x); {
	case a >= 99.95:
		return fmt.Sprintf("%.0f", x)
	case a >= 9.995:
		s = fmt.Sprintf("%.1f", x)
	case a > 0 && a < 0.0995:
		s = fmt.Sprintf("%.3f", x)
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// markdown lines up a table whose first line is its head.
func markdown(lines [][]string) string {
	width := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, c := range l {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for n, l := range lines {
		for i, c := range l {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i == 0 {
				fmt.Fprintf(&b, "| %s%s ", c, pad)
			} else {
				fmt.Fprintf(&b, "| %s%s ", pad, c)
			}
		}
		b.WriteString("|\n")
		if n == 0 {
			for i, w := range width {
				if i == 0 {
					fmt.Fprintf(&b, "|%s", strings.Repeat("-", w+2))
				} else {
					fmt.Fprintf(&b, "|%s:", strings.Repeat("-", w+1))
				}
			}
			b.WriteString("|\n")
		}
	}
	return b.String()
}
