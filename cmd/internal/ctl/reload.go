package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/field"
)

// Reload tells the instance to reload. The error lists all faults, and is a ConfigError when
// the configuration is faulty. Settings that wait for a restart are an error too.
func (c *Instance) Reload(ctx context.Context, stdout io.Writer) error {
	a, err := c.exchange(ctx, http.MethodPost, "/api/v1/reload", "", reloadTimeout)
	switch {
	case err != nil:
		return err
	case a.turnedAway():
		return c.refused(a)
	case a.code == http.StatusServiceUnavailable:
		return fmt.Errorf("ctl: %s", strings.TrimSpace(string(a.text)))
	case a.code != http.StatusOK && a.code != http.StatusAccepted && a.code != http.StatusConflict:
		return fmt.Errorf("ctl: %s answers %s to a reload: check that it is an admin.listen of the same version", c.Admin, a.status)
	}
	var s admin.ReloadStatus
	if err := c.decode(a.text, &s); err != nil {
		return err
	}
	if c.JSON {
		if _, err := stdout.Write(a.text); err != nil {
			return err
		}
	}
	if len(s.Failures) > 0 {
		return reloadError(s.Failures)
	}
	if n := len(s.Waiting); n > 0 {
		return fmt.Errorf("ctl: reloaded at %s, without %s: restart the instance to put in force %s",
			s.Loaded.Local().Format(time.TimeOnly), field.Counted(n, "changed setting"), strings.Join(s.Waiting, ", "))
	}
	if c.JSON {
		return nil
	}
	return writeReloaded(stdout, &s)
}

// writeReloaded prints when the configuration was reloaded, and what this has changed.
func writeReloaded(w io.Writer, s *admin.ReloadStatus) error {
	changed := ""
	if len(s.Last) > 0 {
		changed = "; changed: " + terminal.Printable(changeText(&s.Last[0]))
	}
	_, err := fmt.Fprintf(w, "reloaded at %s%s\n", s.Loaded.Local().Format(time.TimeOnly), changed)
	return err
}

// reloadError lists what was not reloaded, with one fault per line.
func reloadError(failures []admin.ReloadFailure) error {
	var lines []string
	wrong := false
	for i := range failures {
		f := &failures[i]
		lines = append(lines, fmt.Sprintf("%s not reloaded, the previous version stays in effect:", f.Part))
		if len(f.Faults) == 0 {
			lines = append(lines, f.Error)
		}
		for _, fault := range f.Faults {
			lines = append(lines, fault.Text)
			wrong = true
		}
	}
	err := errors.New("ctl: " + strings.Join(lines, "\n"))
	if wrong {
		return ConfigError{err}
	}
	return err
}

// writeReload prints when the configuration was loaded, the parts that failed since, and what waits for a restart.
func writeReload(w io.Writer, s *admin.ReloadStatus) {
	terminal.Rowf(w, "configuration of %s; %s, %d failed\n", s.Loaded.Local().Format(time.DateTime),
		field.Counted(s.Succeeded, "reload"), s.Failed)
	for i := range s.Failures {
		f := &s.Failures[i]
		terminal.Rowf(w, "%s NOT RELOADED at %s: %s\n", f.Part, f.At.Local().Format(time.DateTime), f.Error)
	}
	for _, setting := range s.Waiting {
		terminal.Rowf(w, "%s NOT IN FORCE: restart the instance\n", setting)
	}
	writeChanges(w, s.Last)
}

// shownChanges is the number of changes that ctl status prints. --json has all.
const shownChanges = 5

// writeChanges prints the last changes of the configuration.
func writeChanges(w io.Writer, all []admin.ConfigChange) {
	if len(all) == 0 {
		return
	}
	terminal.Rowf(w, "\nCHANGED AT\tBY\tWHAT\n")
	for i := range all[:min(len(all), shownChanges)] {
		c := &all[i]
		terminal.Rowf(w, "%s\t%s\t%s\n", c.At.Local().Format(time.DateTime), terminal.Printable(c.By), terminal.Printable(changeText(c)))
	}
}

func changeText(c *admin.ConfigChange) string {
	text := strings.Join(c.Names, ", ")
	if more := c.Changed - len(c.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case c.Error != "":
		text = "NOT RELOADED: " + c.Error
	case c.Changed == 0:
		text = "nothing"
	}
	if len(c.Waiting) > 0 {
		text += "; waiting for a restart: " + strings.Join(c.Waiting, ", ")
	}
	return text
}
