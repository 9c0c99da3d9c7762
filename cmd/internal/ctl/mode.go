package ctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	return writeModes(stdout, &modes)
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
