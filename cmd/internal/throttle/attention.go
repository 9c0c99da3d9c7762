package throttle

import "github.com/headgate/headgate/cmd/internal/admin"

// Attention says that the service hangs.
func (c *Component) Attention(add func(admin.Attention)) {
	if t, on := c.metrics(); on && t.Hung {
		add(admin.Attention{
			Level: admin.LevelFault, About: "throttle",
			Text: "The service answers nothing: it gets one request at a time until it answers. Check the service.",
		})
	}
}
