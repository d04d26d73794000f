package api

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/VictoriaMetrics/metrics"

	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/ptymgr"
)

// Gauges are the daemon's counts at one moment.
type Gauges struct {
	Sessions    map[string]int // by state
	Viewers     int
	Connections int    // open WebSockets
	MaxLag      uint64 // bytes that the slowest viewer is behind
	BytesIn     uint64 // typed into sessions
	BytesOut    uint64 // printed by sessions
	Resyncs     uint64 // viewers that fell out of what is kept
	WriteErrors uint64 // connections that ended by a failed write
	ReadErrors  uint64 // terminals that could not be read
	MemoryShort uint64 // bytes of output dropped early for want of memory, over the sessions that are kept
	DiskFree    uint64
	Checkpoints ptymgr.Archive
}

// Metrics are what /metrics shows, in Prometheus' text format. A nil Metrics
// counts nothing.
type Metrics struct {
	requests *metrics.Set
	gauges   func() Gauges
	build    config.Build
}

// NewMetrics returns metrics that ask gauges for the daemon's counts whenever
// they are read.
func NewMetrics(b config.Build, gauges func() Gauges) *Metrics {
	metrics.ExposeMetadata(true) // types, also of the process's own metrics
	return &Metrics{requests: metrics.NewSet(), gauges: gauges, build: b}
}

// request counts one request. route is a pattern, never a path: paths would be
// without end.
func (m *Metrics) request(route string, status int) {
	if m == nil {
		return
	}
	if route == "" {
		route = "refused"
	}
	m.requests.GetOrCreateCounter(`ptyd_http_requests_total{code="` + strconv.Itoa(status) + `",route=` + strconv.Quote(route) + `}`).Inc()
}

// gauge describes one metric made from Gauges.
type gauge struct {
	name, help string
	kind       string
	value      func(Gauges) uint64
}

// gaugeTable lists the metrics without labels.
var gaugeTable = []gauge{
	{"ptyd_viewers", "Viewers attached to sessions.", "gauge", func(g Gauges) uint64 { return uint64(g.Viewers) }},
	{"ptyd_connections", "Open WebSocket connections.", "gauge", func(g Gauges) uint64 { return uint64(g.Connections) }},
	{"ptyd_viewer_lag_bytes", "Bytes of output that the slowest viewer is behind.", "gauge", func(g Gauges) uint64 { return g.MaxLag }},
	{"ptyd_input_bytes_total", "Bytes typed into sessions.", "counter", func(g Gauges) uint64 { return g.BytesIn }},
	{"ptyd_output_bytes_total", "Bytes printed by sessions.", "counter", func(g Gauges) uint64 { return g.BytesOut }},
	{"ptyd_resyncs_total", "Times that a viewer fell out of the output that is kept.", "counter", func(g Gauges) uint64 { return g.Resyncs }},
	{"ptyd_write_errors_total", "Connections that ended by a failed write.", "counter", func(g Gauges) uint64 { return g.WriteErrors }},
	{"ptyd_read_errors_total", "Terminals that could not be read.", "counter", func(g Gauges) uint64 { return g.ReadErrors }},
	{"ptyd_output_dropped_bytes", "Bytes of output that the sessions now kept have dropped early for want of memory.", "gauge", func(g Gauges) uint64 { return g.MemoryShort }},
	{"ptyd_disk_free_bytes", "Free bytes on the disk of the state directory.", "gauge", func(g Gauges) uint64 { return g.DiskFree }},
	{"ptyd_checkpoint_disk_bytes", "Bytes of checkpoints on the disk.", "gauge", func(g Gauges) uint64 { return uint64(g.Checkpoints.Bytes) }},
	{"ptyd_checkpoint_written_bytes_total", "Bytes of output written to checkpoints.", "counter", func(g Gauges) uint64 { return g.Checkpoints.Written }},
	{"ptyd_checkpoint_skipped_bytes_total", "Bytes of output that were not written to checkpoints because newer ones went before.", "counter", func(g Gauges) uint64 { return g.Checkpoints.Skipped }},
	{"ptyd_checkpoint_failures_total", "Times that checkpoints could not be written.", "counter", func(g Gauges) uint64 { return g.Checkpoints.Failures }},
	{"ptyd_checkpoint_ok", "0: no checkpoints are written, /v1/status says why.", "gauge", func(g Gauges) uint64 { return map[bool]uint64{true: 1}[g.Checkpoints.Error == ""] }},
}

// write is the whole answer. A bytes.Buffer takes all.
func (m *Metrics) write(w *bytes.Buffer) {
	head := func(name, help, kind string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	head("ptyd_build_info", "Always 1; the labels say which program this is.", "gauge")
	fmt.Fprintf(w, "ptyd_build_info{commit=%s,go=%s,version=%s} 1\n", label(m.build.Commit), label(m.build.Go), label(m.build.Version))
	now := m.gauges()
	head("ptyd_sessions", "Sessions by state.", "gauge")
	for _, state := range slices.Sorted(maps.Keys(now.Sessions)) {
		fmt.Fprintf(w, "ptyd_sessions{state=%s} %d\n", label(state), now.Sessions[state])
	}
	for _, g := range gaugeTable {
		head(g.name, g.help, g.kind)
		fmt.Fprintf(w, "%s %d\n", g.name, g.value(now))
	}
	m.requests.WritePrometheus(w)
	metrics.WriteProcessMetrics(w)
	metrics.WriteFDMetrics(w)
}

// label quotes a label's value: only these three are special, see
// https://prometheus.io/docs/instrumenting/exposition_formats/.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

func (m *Metrics) serve(w http.ResponseWriter) {
	var b bytes.Buffer
	m.write(&b)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = io.Copy(w, &b) // whoever went away needs no answer
}
