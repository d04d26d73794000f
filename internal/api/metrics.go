package api

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ptyd/ptyd/internal/config"
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
}

// Metrics are what /metrics shows. A nil Metrics counts nothing.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	handler  http.Handler
}

// NewMetrics returns metrics that ask gauges for the daemon's counts whenever
// they are read.
func NewMetrics(b config.Build, gauges func() Gauges) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ptyd_http_requests_total", Help: "HTTP requests by route and status.",
		}, []string{"route", "code"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ptyd_build_info", Help: "Always 1; the labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go": b.Go},
	})
	info.Set(1)
	m.registry.MustRegister(m.requests, info, &collector{gauges},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
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
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

// gauge describes one metric made from Gauges.
type gauge struct {
	name, help string
	kind       prometheus.ValueType
	value      func(Gauges) float64
}

func (g gauge) desc() *prometheus.Desc { return prometheus.NewDesc(g.name, g.help, nil, nil) }

var sessionsDesc = prometheus.NewDesc("ptyd_sessions", "Sessions by state.", []string{"state"}, nil)

// gaugeTable lists the metrics without labels.
var gaugeTable = []gauge{
	{"ptyd_viewers", "Viewers attached to sessions.", prometheus.GaugeValue, func(g Gauges) float64 { return float64(g.Viewers) }},
	{"ptyd_connections", "Open WebSocket connections.", prometheus.GaugeValue, func(g Gauges) float64 { return float64(g.Connections) }},
	{"ptyd_viewer_lag_bytes", "Bytes of output that the slowest viewer is behind.", prometheus.GaugeValue, func(g Gauges) float64 { return float64(g.MaxLag) }},
	{"ptyd_input_bytes_total", "Bytes typed into sessions.", prometheus.CounterValue, func(g Gauges) float64 { return float64(g.BytesIn) }},
	{"ptyd_output_bytes_total", "Bytes printed by sessions.", prometheus.CounterValue, func(g Gauges) float64 { return float64(g.BytesOut) }},
	{"ptyd_resyncs_total", "Times that a viewer fell out of the output that is kept.", prometheus.CounterValue, func(g Gauges) float64 { return float64(g.Resyncs) }},
	{"ptyd_write_errors_total", "Connections that ended by a failed write.", prometheus.CounterValue, func(g Gauges) float64 { return float64(g.WriteErrors) }},
	{"ptyd_read_errors_total", "Terminals that could not be read.", prometheus.CounterValue, func(g Gauges) float64 { return float64(g.ReadErrors) }},
	{"ptyd_output_dropped_bytes", "Bytes of output that the sessions now kept have dropped early for want of memory.", prometheus.GaugeValue, func(g Gauges) float64 { return float64(g.MemoryShort) }},
	{"ptyd_disk_free_bytes", "Free bytes on the disk of the state directory.", prometheus.GaugeValue, func(g Gauges) float64 { return float64(g.DiskFree) }},
}

type collector struct{ gauges func() Gauges }

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- sessionsDesc
	for _, g := range gaugeTable {
		ch <- g.desc()
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	now := c.gauges()
	for state, n := range now.Sessions {
		ch <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(n), state)
	}
	for _, g := range gaugeTable {
		ch <- prometheus.MustNewConstMetric(g.desc(), g.kind, g.value(now))
	}
}
