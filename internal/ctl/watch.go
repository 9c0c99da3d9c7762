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

	"github.com/headgate/headgate/internal/admin"
)

// watch shows the shares of an instance again and again.
type watch struct {
	ctl    *Instance
	out    io.Writer
	errors io.Writer
	every  time.Duration
	// shape says which clients are shown, in what order.
	shape tableShape
	// window gives the size of the terminal that out is; nil is no terminal.
	window func() (rows, columns int)

	answered bool          // the instance has answered before
	away     bool          // it did not answer when it was asked last
	last     *admin.Shares // what it told then
}

// run shows until ctx ends. An instance that answers once may go and come back.
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

// turn asks once and shows what came.
func (w *watch) turn(ctx context.Context) error {
	text, err := w.ctl.ask(ctx, http.MethodGet, sharesPage)
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
		note = fmt.Sprintf("%s has started anew", w.ctl.Admin)
	case w.away:
		note = fmt.Sprintf("%s answers again", w.ctl.Admin)
	}
	w.answered, w.away, w.last = true, false, s
	return w.show(text, note)
}

// missed tells, once, that an instance which has answered does not, and leaves the
// last table in place. One that never has is not waited for.
func (w *watch) missed(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil // It is us who leave.
	default:
	}
	first, note := !w.away, err.Error()+"; asking again"
	w.away = true
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

// show writes what came: as it is in a line with --json, in place on a terminal,
// else below what was there.
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
	if err := writeShares(w.out, w.last, w.shape); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w.out)
	return err
}

// tell writes a note apart from what programs read.
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

// draw writes the last table over what the terminal shows, and a note below it. It
// goes to the corner and clears as it goes, which flickers less than clearing first.
func (w *watch) draw(note string) error {
	rows, columns := w.window()
	shape := w.shape
	shape.columns = columns
	room := max(0, rows-2) // One is for the note, one for the cursor.
	if rows > 0 {
		shape.rows = max(1, room)
	}
	lines := sharesLines(w.last, shape)
	if rows > 0 {
		lines = lines[:min(len(lines), room)]
	}
	var screen strings.Builder
	screen.WriteString("\x1b[H")
	for _, line := range append(lines, note) {
		screen.WriteString(cut(line, columns) + "\x1b[K\n")
	}
	screen.WriteString("\x1b[J")
	_, err := io.WriteString(w.out, screen.String())
	return err
}
