package mode

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// Attention notes the modes that were set at run time.
func (c *Component) Attention(add func(admin.Attention)) {
	for _, m := range c.current().list() {
		about, subject := "rule", "The rule "+m.Rule+" has"
		if m.Rule == "" {
			about, subject = "instance", "All rules have"
		}
		ends := "does not end by itself"
		if m.Until != nil {
			ends = "ends at " + m.Until.Format(time.RFC3339)
		}
		since, argument := m.Since, ""
		if m.Rule != "" {
			argument = " " + m.Rule
		}
		add(admin.Attention{
			Level: admin.LevelNote, About: about, Name: m.Rule, Since: &since,
			Text: fmt.Sprintf("%s the mode %s of the run time, which %s. headgate ctl mode file%s ends the mode.",
				subject, m.Mode, ends, argument),
		})
	}
}
