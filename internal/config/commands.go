package config

// Commands says in one line which commands the configuration is enough for, and what the others need.
func (c *Config) Commands() string {
	const upstream, server = "headgate proxy needs proxy.upstream", "headgate server needs the section server"
	switch {
	case c.Proxy.Upstream != nil && c.Server != nil:
		return "enough for headgate proxy and headgate server"
	case c.Proxy.Upstream != nil:
		return "enough for headgate proxy; " + server
	case c.Server != nil:
		return "enough for headgate server; " + upstream
	default:
		return "enough for a Go program; " + upstream + ", and " + server
	}
}
