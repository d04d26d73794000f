package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/ptyd/ptyd/internal/bench/procfs"
	"github.com/ptyd/ptyd/internal/bench/stats"
)

// Report is the result of a run, as it is written to a file.
type Report struct {
	Date      time.Time      `json:"date"`
	Version   string         `json:"version"` // of the daemon
	Machine   procfs.Machine `json:"machine"`
	Others    float64        `json:"others_busy"` // median of the processors busy with other things before each pair
	Short     bool           `json:"short"`
	SelfCheck bool           `json:"self_check,omitempty"`
	Rows      []Row          `json:"rows"`
}

// Row is one number that was measured.
type Row struct {
	Test     string       `json:"test"`
	Title    string       `json:"title"`
	Ptyd     float64      `json:"ptyd"`            // median
	Baseline float64      `json:"baseline"`        // median
	Alone    bool         `json:"alone,omitempty"` // there is nothing to compare with: baseline is 0
	Ratio    *float64     `json:"ratio"`           // median over the pairs; null where the baseline is 0
	Bar      string       `json:"bar,omitempty"`
	Pass     *bool        `json:"pass"` // null without a bar
	Pairs    []stats.Pair `json:"pairs,omitempty"`
	Error    string       `json:"error,omitempty"`
	LeftOut  bool         `json:"left_out,omitempty"` // for want of room: Error says why, and nothing failed
}

// bar is what a row is held to.
type bar struct {
	set   bool
	ratio bool // it judges the ratio, else ptyd's own number
	least bool // it is a least, else a most
	limit float64
}

func noBar() bar                   { return bar{} }
func ratioAtLeast(x float64) bar   { return bar{set: true, ratio: true, least: true, limit: x} }
func ratioAtMost(x float64) bar    { return bar{set: true, ratio: true, limit: x} }
func atLeast(x float64) bar        { return bar{set: true, least: true, limit: x} }
func atMost(x float64) bar         { return bar{set: true, limit: x} }
func (b bar) holds(x float64) bool { return b.least && x >= b.limit || !b.least && x <= b.limit }

func (b bar) String() string {
	if !b.set {
		return ""
	}
	s := "≤"
	if b.least {
		s = "≥"
	}
	s += " " + number(b.limit)
	if b.ratio {
		s += " ×"
	}
	return s
}

// newRow reduces the pairs of one number.
func newRow(test, title string, pairs []stats.Pair, b bar) Row {
	p, base := stats.Columns(pairs)
	row := Row{Test: test, Title: title, Ptyd: stats.Median(p), Baseline: stats.Median(base), Bar: b.String(), Pairs: pairs}
	judged := row.Ptyd
	ratio := stats.Ratio(pairs)
	if !math.IsNaN(ratio) {
		row.Ratio = &ratio
	}
	if b.ratio {
		judged = ratio
	}
	if b.set {
		pass := b.holds(judged) // NaN holds nothing
		row.Pass = &pass
	}
	return row
}

func (r *runner) add(test, title string, pairs []stats.Pair, b bar) {
	r.rows = append(r.rows, newRow(test, title, pairs, b))
}

// addAlone adds a number that only the daemon has.
func (r *runner) addAlone(test, title string, values []float64, b bar) {
	pairs := make([]stats.Pair, len(values))
	for i, v := range values {
		pairs[i].Ptyd = v
	}
	row := newRow(test, title, pairs, b)
	row.Alone = true
	r.rows = append(r.rows, row)
}

// leaveOut adds a row that this machine, or this run, cannot measure, and why.
func (r *runner) leaveOut(test, title, why string) {
	r.rows = append(r.rows, Row{Test: test, Title: title, Error: "not measured: " + why, LeftOut: true})
}

// Write puts the report into a file as JSON.
func (rep *Report) Write(path string) error {
	b, err := json.MarshalIndent(rep, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// ReadReport reads what Write wrote.
func ReadReport(path string) (*Report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rep Report
	if err := json.Unmarshal(b, &rep); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &rep, nil
}
