package quota

import (
	"fmt"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// Attention says that usage cannot be written or delivered.
func (m *Metering) Attention(add func(admin.Attention)) {
	if m.meter == nil {
		return
	}
	now := m.meter.Stats()
	if now.Journal.Error != "" {
		add(admin.Attention{
			Level: admin.LevelFault, About: "metering",
			Text: fmt.Sprintf("The journal of metering cannot be written, and %d records wait in memory: %s. Check the disk.",
				now.Waiting, now.Journal.Error),
		})
	}
	for i := range now.Outputs {
		if out := &now.Outputs[i]; out.Error != "" {
			add(admin.Attention{
				Level: admin.LevelWarning, About: "metering", Name: out.Name,
				Text: fmt.Sprintf("The output %s of metering fails, and %d records wait in the journal: %s. Check the receiver.",
					out.Name, out.Pending, out.Error),
			})
		}
	}
}
