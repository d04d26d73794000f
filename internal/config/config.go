package config

import "time"

// Config is all that can be set about a daemon.
type Config struct {
	Listen         string
	Insecure       bool
	TLSCert        string
	TLSKey         string
	BasePath       string // "" or "/name", never a trailing slash
	PublicURL      string // "" or scheme://host[:port][/path], never a trailing slash
	AllowedHosts   []string
	TrustedProxies []string // networks in CIDR notation

	StateDir string
	Shell    string

	LogLevel  string
	LogFormat string

	SessionsPerOwner int
	SessionsTotal    int
	OutputLimit      int64
	OutputTotal      int64
	MinFree          int64
	RemoveAfter      time.Duration
	EndedPerOwner    int
	Grace            time.Duration
	SessionMemory    int64
	SessionPids      int

	CheckpointInterval time.Duration
	CheckpointTotal    int64

	AuditKeep    time.Duration
	AuditMaxRows int

	WebTTL       time.Duration
	LinkTTL      time.Duration
	PingInterval time.Duration
	Metrics      bool

	origins map[string]string // key name → where its value came from; absent: default
}

// Default returns the configuration of a daemon that was told nothing.
func Default() Config {
	return Config{
		Listen:             "127.0.0.1:7373",
		StateDir:           DefaultStateDir(),
		LogLevel:           "info",
		LogFormat:          "auto",
		SessionsPerOwner:   200,
		SessionsTotal:      10_000,
		OutputLimit:        8 << 20,
		OutputTotal:        1 << 30,
		MinFree:            64 << 20,
		RemoveAfter:        24 * time.Hour,
		EndedPerOwner:      1000,
		Grace:              3 * time.Second,
		CheckpointInterval: 2 * time.Second,
		CheckpointTotal:    1 << 30,
		AuditKeep:          90 * day,
		AuditMaxRows:       1_000_000,
		WebTTL:             30 * day,
		LinkTTL:            5 * time.Minute,
		PingInterval:       20 * time.Second,
		Metrics:            true,
	}
}

// TLS reports whether the TCP listener speaks TLS.
func (c *Config) TLS() bool { return c.TLSCert != "" }

// Origin says where the value of the key came from: "default", a file with
// its line, an environment variable or a flag.
func (c *Config) Origin(key string) string {
	if o, ok := c.origins[key]; ok {
		return o
	}
	return "default"
}

// Diff names the keys whose values differ between a and b, those that can
// change while the daemon runs and those that need a restart.
func Diff(a, b *Config) (live, restart []string) {
	for _, k := range Keys {
		if k.bind(a).String() == k.bind(b).String() {
			continue
		}
		if k.Live {
			live = append(live, k.Name)
		} else {
			restart = append(restart, k.Name)
		}
	}
	return live, restart
}

// TakeLive copies the values of the keys that can change while the daemon runs.
func (c *Config) TakeLive(from *Config) {
	for _, k := range Keys {
		if k.Live {
			// The value was validated when from was loaded.
			_ = k.bind(c).Set(k.bind(from).String())
		}
	}
}
