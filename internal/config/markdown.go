package config

import (
	"fmt"
	"strings"
)

// Markdown writes docs/configuration.md from the table of keys.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Every setting has one name. ` + "`ptyd serve`" + ` reads it, in this order, the later winning:

1. the default below,
2. the TOML file: ` + "`--config FILE`" + ` (or ` + "`PTYD_CONFIG`" + `), else ` + "`$XDG_CONFIG_HOME/ptyd/config.toml`" + ` (` + "`/etc/ptyd/config.toml`" + ` as a system service) if it exists,
3. the environment variable,
4. the flag.

Unknown keys and bad values are errors that name the key and where it stands.
Sizes are bytes: ` + "`8MiB`, `500MB`, `4096`" + `. Durations: ` + "`3s`, `24h`, `90d`, `1d12h`" + `. Lists are TOML arrays in the
file and joined by commas elsewhere. Keys marked *live* are taken over by
SIGHUP; the log says which of the other keys wait for a restart.

` + "```toml" + `
# ~/.config/ptyd/config.toml
listen = "127.0.0.1:7373"
public_url = "https://term.example.com"
allowed_hosts = ["box.lan:7373"]
output_limit = "8MiB"
remove_after = "24h"
` + "```" + `

This page is written by ` + "`go test ./internal/config -run TestDocumentation -update`" + `.
`)
	def := Default()
	def.StateDir = ""
	group := ""
	for _, k := range Keys {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(&b, "\n## %s\n\n| key | type | default | environment | flag | live |\n|---|---|---|---|---|---|\n", group)
			for _, o := range Keys {
				if o.Group == group {
					fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | `%s` | `--%s` | %s |\n",
						o.Name, o.Name, o.bind(&def).Type(), defaultText(o, &def), o.Env(), o.Flag(), map[bool]string{true: "yes"}[o.Live])
				}
			}
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", k.Name, k.Doc)
	}
	return b.String()
}

func defaultText(k Key, def *Config) string {
	if s := k.bind(def).String(); s != "" {
		return "`" + s + "`"
	}
	return ""
}
