package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
)

// watch prints what an instance shows, repeatedly.
type watch struct {
	ctl    *Instance
	out    io.Writer
	errors io.Writer
	every  time.Duration
	view   view
	// window returns the size of the terminal. It is nil when out is not a terminal.
	window func() (rows, columns int)

	answered    bool // The instance has answered at least once.
	unreachable bool // The last request failed.
}

// view is what a watch shows.
type view interface {
	// read requests the present state. restarted says that the instance has started again since the last call. After an error, the last
	// state stays. text is the document of --json.
	read(ctx context.Context, c *Instance) (text []byte, restarted bool, err error)
	// lines are those of the state, cut and chosen for a terminal; 0 means no bound.
	lines(rows, columns int) []string
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

// turn requests the state once and prints it.
func (w *watch) turn(ctx context.Context) error {
	text, restarted, err := w.view.read(ctx, w.ctl)
	if err != nil {
		return w.missed(ctx, err)
	}
	note := ""
	switch {
	case w.answered && restarted:
		note = fmt.Sprintf("%s has restarted", w.ctl.Admin)
	case w.unreachable:
		note = fmt.Sprintf("%s answers again", w.ctl.Admin)
	}
	w.answered, w.unreachable = true, false
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
	_, err := fmt.Fprintf(w.out, "%s\n\n", strings.Join(w.view.lines(0, 0), "\n"))
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
	room := max(0, rows-2) // One row is for the note and one for the cursor.
	bound := 0
	if rows > 0 {
		bound = max(1, room)
	}
	lines := w.view.lines(bound, columns)
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
