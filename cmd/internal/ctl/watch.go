package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/cmd/internal/fairshare"
)

// watch prints the shares of an instance repeatedly.
type watch struct {
	ctl    *Instance
	out    io.Writer
	errors io.Writer
	every  time.Duration
	// shape selects and orders the clients.
	shape fairshare.Shape
	// window returns the size of the terminal. It is nil when out is not a terminal.
	window func() (rows, columns int)

	answered    bool          // The instance has answered at least once.
	unreachable bool          // The last request failed.
	last        *admin.Shares // The last answer.
}

// run prints until ctx ends. After the first answer, it tolerates an unreachable instance.
func (w *watch) run(ctx context.Context) error {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		if err := w.turn(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// turn requests the shares once and prints them.
func (w *watch) turn(ctx context.Context) error {
	text, err := w.ctl.query(ctx, http.MethodGet, sharesPage)
	s := new(admin.Shares)
	if err == nil {
		err = w.ctl.decode(text, s)
	}
	if err != nil {
		return w.missed(ctx, err)
	}
	note := ""
	switch {
	case w.answered && s.Cycle < w.last.Cycle:
		note = fmt.Sprintf("%s has restarted", w.ctl.Admin)
	case w.unreachable:
		note = fmt.Sprintf("%s answers again", w.ctl.Admin)
	}
	w.answered, w.unreachable, w.last = true, false, s
	return w.show(text, note)
}

// missed reports a failed request once, and leaves the last table in place. It returns the
// error when the instance has never answered.
func (w *watch) missed(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil // The user ended the watch.
	default:
	}
	first, note := !w.unreachable, err.Error()+"; retrying"
	w.unreachable = true
	switch {
	case !w.answered:
		return err
	case w.window != nil:
		return w.draw(note)
	case first:
		return w.tell(note)
	default:
		return nil
	}
}

// show prints an answer: as one line with --json, in place on a terminal, or below the last
// table.
func (w *watch) show(text []byte, note string) error {
	if w.window != nil {
		return w.draw(note)
	}
	if err := w.tell(note); err != nil {
		return err
	}
	if w.ctl.JSON {
		return writeLine(w.out, text)
	}
	if err := fairshare.Write(w.out, w.last, w.shape); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w.out)
	return err
}

// tell writes a note to errors, separate from the output.
func (w *watch) tell(note string) error {
	if note == "" {
		return nil
	}
	_, err := fmt.Fprintf(w.errors, "headgate: %s\n", note)
	return err
}

// writeLine writes a JSON document as one line.
func writeLine(out io.Writer, document []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, document); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := out.Write(line.Bytes())
	return err
}

// draw writes the last table over the previous one, with a note below. It moves the cursor to
// the corner and clears line by line. Clearing the whole screen first would flicker.
func (w *watch) draw(note string) error {
	rows, columns := w.window()
	shape := w.shape
	shape.Columns = columns
	room := max(0, rows-2) // One row is for the note and one for the cursor.
	if rows > 0 {
		shape.Rows = max(1, room)
	}
	lines := fairshare.Lines(w.last, shape)
	if rows > 0 {
		lines = lines[:min(len(lines), room)]
	}
	var screen strings.Builder
	screen.WriteString("\x1b[H")
	for _, line := range append(lines, note) {
		screen.WriteString(terminal.Cut(line, columns) + "\x1b[K\n")
	}
	screen.WriteString("\x1b[J")
	_, err := io.WriteString(w.out, screen.String())
	return err
}
