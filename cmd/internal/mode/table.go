package mode

import (
	"cmp"
	"io"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

// Write prints the modes that were set at run time for headgate ctl mode and status. Without one it prints nothing.
func Write(w io.Writer, modes []admin.ModeOverride) {
	if len(modes) == 0 {
		return
	}
	terminal.Rowf(w, "\nMODE OF THE RUN TIME\tRULE\tKEYS\tSET AT\tBY\tENDS\n")
	for i := range modes {
		m := &modes[i]
		keys, never, instances := "all", "with the process", ", or with the process"
		if m.Everywhere {
			never, instances = "never, in all instances", ", in all instances"
		}
		ends := never
		if m.Percent > 0 {
			keys = percent(m.Percent)
		}
		if m.Until != nil {
			ends = m.Until.Local().Format(time.DateTime) + instances
		}
		terminal.Rowf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Mode, cmp.Or(m.Rule, "all"), keys,
			m.Since.Local().Format(time.DateTime), cmp.Or(m.By, "-"), ends)
	}
}
