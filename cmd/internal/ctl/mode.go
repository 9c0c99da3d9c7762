package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"text/tabwriter"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/mode"
)

const modePage = "/api/v1/mode"

// Modes prints the modes that were set at run time, as a table or as JSON.
func (c *Instance) Modes(ctx context.Context, stdout io.Writer) error {
	return show(ctx, c, modePage, stdout, writeModes)
}

// SetMode sets or ends modes, and prints those that are in effect then.
func (c *Instance) SetMode(ctx context.Context, stdout io.Writer, change *admin.ModeChange) error {
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	text, err := c.call(ctx, http.MethodPost, modePage, string(body))
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := stdout.Write(text)
		return err
	}
	var modes admin.Modes
	if err := c.decode(text, &modes); err != nil {
		return err
	}
	if err := writeModes(stdout, &modes); err != nil {
		return err
	}
	return c.noteModes(stdout, &modes, change)
}

// noteModes says what a change has not done.
func (c *Instance) noteModes(out io.Writer, m *admin.Modes, change *admin.ModeChange) error {
	text := ""
	if m.Behind {
		text = "the source has the change, and this instance does not have it yet: see headgate ctl status\n"
	}
	for i := range m.Modes {
		asked := change.Rules == nil || slices.Contains(change.Rules, m.Modes[i].Rule)
		if change.Mode == "file" && !change.Here && !m.Modes[i].Everywhere && asked {
			text += "this instance has modes of its own: headgate ctl mode file --here ends them\n"
			break
		}
	}
	if m.Undo != "" {
		text += "undo: " + m.Undo + "\n"
	}
	_, err := io.WriteString(out, text)
	return err //nolint:wrapcheck // because it is the writer's own error.
}

func writeModes(out io.Writer, m *admin.Modes) error {
	if len(m.Modes) == 0 {
		_, err := fmt.Fprintln(out, "all modes are those of the file")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	mode.Write(w, m.Modes)
	return w.Flush()
}
