package config

import "time"

// Key is one setting. Keys is the only place that lists them.
type Key struct {
	Name  string // as in the file
	Group string // heading in the documentation
	Doc   string // one or two sentences
	Live  bool   // taken over on SIGHUP
	bind  func(*Config) Value
}

// Env is the key's environment variable.
func (k Key) Env() string { return "PTYD_" + upper(k.Name) }

// Flag is the key's flag without the dashes.
func (k Key) Flag() string { return dashed(k.Name) }

// Value returns the key's value in c, for reading and setting as text.
func (k Key) Value(c *Config) Value { return k.bind(c) }

// Bounds that keep a slip of a unit from disabling a limit or overflowing.
const (
	maxSessions = 100_000
	maxRows     = 1_000_000_000
	year        = 366 * day
)

// Keys are all settings, in the order of the documentation.
var Keys = []Key{
	{Name: "listen", Group: "Listening", Doc: "Address and port for browsers and remote clients. Port 0 picks a free one and says which. An address that is not a loopback one needs `tls_cert` or `insecure`.",
		bind: func(c *Config) Value { return text{&c.Listen, checkListen} }},
	{Name: "insecure", Group: "Listening", Doc: "Allow a listen address that is not a loopback one without TLS: passwords, tokens and terminals are then readable on the network.",
		bind: func(c *Config) Value { return boolean{&c.Insecure} }},
	{Name: "tls_cert", Group: "Listening", Doc: "PEM file with the certificate chain. Needs `tls_key`.",
		bind: func(c *Config) Value { return text{&c.TLSCert, checkPath} }},
	{Name: "tls_key", Group: "Listening", Doc: "PEM file with the private key of `tls_cert`.",
		bind: func(c *Config) Value { return text{&c.TLSKey, checkPath} }},
	{Name: "base_path", Group: "Listening", Doc: "Path under which everything is served, for a proxy that passes the path on unchanged, such as `/terminals`.",
		bind: func(c *Config) Value { return text{&c.BasePath, checkBasePath} }},
	{Name: "public_url", Group: "Listening", Doc: "The address people use when a proxy stands in front, such as `https://term.example.com`. Login links start with it, and its host and origin are trusted.",
		bind: func(c *Config) Value { return text{&c.PublicURL, checkPublicURL} }},
	{Name: "allowed_hosts", Group: "Listening", Doc: "Further host names by which the daemon may be addressed, such as `term.example.com` or `box.lan:7373`. A name without a port is allowed with any. The listen address and the loopback names are always allowed.",
		bind: func(c *Config) Value { return list{&c.AllowedHosts, checkHost} }},
	{Name: "trusted_proxies", Group: "Listening", Doc: "Addresses or networks of proxies, such as `127.0.0.1` or `10.0.0.0/8`, whose `X-Forwarded-For` says where a request comes from. Failed logins are then limited per client, not for all behind the proxy together, and the audit log names the client. Whoever can reach the daemon from such an address can claim any other.",
		bind: func(c *Config) Value { return list{&c.TrustedProxies, checkNetwork} }},

	{Name: "state_dir", Group: "State", Doc: "Directory of the database, the socket and the lock. Created with mode 0700. The default is `$XDG_STATE_HOME/ptyd`, or `/var/lib/ptyd` as a system service.",
		bind: func(c *Config) Value { return text{&c.StateDir, checkNotEmpty} }},
	{Name: "min_free", Group: "State", Doc: "New sessions are refused while less than this is free on the disk of the state directory. Running sessions go on. 0 turns the check off.", Live: true,
		bind: func(c *Config) Value { return size{&c.MinFree, 0, 1 << 50} }},

	{Name: "shell", Group: "Sessions", Doc: "Program for sessions that ask for a shell. The default is the login shell of the daemon's user.",
		bind: func(c *Config) Value { return text{&c.Shell, checkPath} }},
	{Name: "sessions_per_owner", Group: "Sessions", Doc: "Living sessions one user may have.", Live: true,
		bind: func(c *Config) Value { return integer{&c.SessionsPerOwner, 1, maxSessions} }},
	{Name: "sessions_total", Group: "Sessions", Doc: "Living sessions in all.", Live: true,
		bind: func(c *Config) Value { return integer{&c.SessionsTotal, 1, maxSessions} }},
	{Name: "output_limit", Group: "Sessions", Doc: "Output kept per session, in memory. The oldest is dropped beyond it. A session may ask for less.", Live: true,
		bind: func(c *Config) Value { return size{&c.OutputLimit, 64 << 10, 4 << 30} }},
	{Name: "output_total", Group: "Sessions", Doc: "Output kept of ended sessions in all, in memory. Beyond it those that ended first are removed, before `remove_after` is over; the one that ended last stays. At least `output_limit`.", Live: true,
		bind: func(c *Config) Value { return size{&c.OutputTotal, 64 << 10, 1 << 50} }},
	{Name: "remove_after", Group: "Sessions", Doc: "How long an ended session stays with its output and exit status. 0 keeps it until somebody removes it.", Live: true,
		bind: func(c *Config) Value { return duration{&c.RemoveAfter, 0, 10 * year} }},
	{Name: "ended_per_owner", Group: "Sessions", Doc: "Ended sessions one user keeps. Beyond it those that ended first are removed, before `remove_after` is over.", Live: true,
		bind: func(c *Config) Value { return integer{&c.EndedPerOwner, 1, maxSessions} }},
	{Name: "grace", Group: "Sessions", Doc: "Time between TERM and KILL when a session is closed or the daemon stops.", Live: true,
		bind: func(c *Config) Value { return duration{&c.Grace, 0, 5 * time.Minute} }},
	{Name: "session_memory", Group: "Sessions", Doc: "Memory that all processes of a session together may use, where it asks for no limit itself. 0 sets none. Needs cgroups with the memory controller: sessions are refused where they are not there.", Live: true,
		bind: func(c *Config) Value { return size{&c.SessionMemory, 0, 1 << 50} }},
	{Name: "session_pids", Group: "Sessions", Doc: "Processes and threads that a session may have, where it asks for no limit itself. 0 sets none. Needs cgroups with the pids controller: sessions are refused where they are not there.", Live: true,
		bind: func(c *Config) Value { return integer{&c.SessionPids, 0, 1 << 22} }},

	{Name: "checkpoint_interval", Group: "Checkpoints", Doc: "How often the output of sessions is written to the state directory, at most, so that it can be read after a reboot. What came later is lost then. 0 writes nothing; a session can also ask for that alone.", Live: true,
		bind: func(c *Config) Value { return duration{&c.CheckpointInterval, 0, time.Hour} }},
	{Name: "checkpoint_total", Group: "Checkpoints", Doc: "Bytes of checkpoints on the disk in all. A session has at most its `output_limit` of it. Beyond the total those of the oldest ended sessions go, then the oldest output of whichever session has most.", Live: true,
		bind: func(c *Config) Value { return size{&c.CheckpointTotal, 64 << 10, 1 << 50} }},

	{Name: "audit_keep", Group: "Audit", Doc: "How long audit rows are kept. 0 keeps them for ever.", Live: true,
		bind: func(c *Config) Value { return duration{&c.AuditKeep, 0, 100 * year} }},
	{Name: "audit_max_rows", Group: "Audit", Doc: "Audit rows kept at most; the oldest go first. 0 sets no bound.", Live: true,
		bind: func(c *Config) Value { return integer{&c.AuditMaxRows, 0, maxRows} }},

	{Name: "web_ttl", Group: "Access", Doc: "How long a browser stays logged in.",
		bind: func(c *Config) Value { return duration{&c.WebTTL, time.Minute, 10 * year} }},
	{Name: "link_ttl", Group: "Access", Doc: "How long a login link can be used, once.",
		bind: func(c *Config) Value { return duration{&c.LinkTTL, 10 * time.Second, 7 * day} }},
	{Name: "ping_interval", Group: "Access", Doc: "Time between liveness probes on a WebSocket. A peer that shows no life for three of them is given up.",
		bind: func(c *Config) Value { return duration{&c.PingInterval, time.Second, 10 * time.Minute} }},

	{Name: "log_level", Group: "Logs and metrics", Doc: "`debug`, `info`, `warn` or `error`.", Live: true,
		bind: func(c *Config) Value { return text{&c.LogLevel, oneOf("debug", "info", "warn", "error")} }},
	{Name: "log_format", Group: "Logs and metrics", Doc: "`console`, `json`, or `auto`: console on a terminal, JSON otherwise. Logs go to standard error.",
		bind: func(c *Config) Value { return text{&c.LogFormat, oneOf("auto", "console", "json")} }},
	{Name: "metrics", Group: "Logs and metrics", Doc: "Serve Prometheus metrics at `/metrics`, to whoever may view.",
		bind: func(c *Config) Value { return boolean{&c.Metrics} }},
}

func lookup(name string) (Key, bool) {
	for _, k := range Keys {
		if k.Name == name {
			return k, true
		}
	}
	return Key{}, false
}
