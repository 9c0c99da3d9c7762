package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/app"
)

// watch shows the shares of an instance again and again.
type watch struct {
	ctl    *ctlCommand
	out    io.Writer
	errors io.Writer
	every  time.Duration
	// window gives the size of the terminal that out is; nil is no terminal.
	window func() (rows, columns int)

	answered bool   // the instance has answered before
	away     bool   // it did not answer when it was asked last
	cycle    uint64 // the last that it told of
	table    string // the last one
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
	var s app.Shares
	if err == nil {
		err = w.ctl.decode(text, &s)
	}
	if err != nil {
		return w.missed(ctx, err)
	}
	note := ""
	switch {
	case w.answered && s.Cycle < w.cycle:
		note = fmt.Sprintf("%s has started anew", w.ctl.Admin)
	case w.away:
		note = fmt.Sprintf("%s answers again", w.ctl.Admin)
	}
	w.answered, w.away, w.cycle = true, false, s.Cycle
	return w.show(text, &s, note)
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
func (w *watch) show(text []byte, s *app.Shares, note string) error {
	var table strings.Builder
	if err := writeShares(&table, s); err != nil {
		return err
	}
	w.table = table.String()
	if w.window != nil {
		return w.draw(note)
	}
	if err := w.tell(note); err != nil {
		return err
	}
	if w.ctl.JSON {
		return writeLine(w.out, text)
	}
	_, err := fmt.Fprintln(w.out, w.table)
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
	lines := strings.Split(strings.TrimSuffix(w.table, "\n"), "\n")
	if rows > 0 {
		lines = fit(lines, rows-2) // One is for the note, one for the cursor.
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

// fit leaves out clients from a table that has more lines than there is room for,
// and says how many; the two lines above them and the total stay.
func fit(lines []string, room int) []string {
	const around = 4 // two above, the line that says how many, the total
	if len(lines) <= room || room < around {
		return lines[:min(len(lines), max(0, room))]
	}
	shown := 2 + room - around
	left := len(lines) - shown - 1
	return append(append(lines[:shown:shown], fmt.Sprintf("(%d more; --json has all)", left)), lines[len(lines)-1])
}

// cut shortens a line to the columns of the terminal, so that it takes one row; 0 is
// as wide as it likes.
func cut(line string, columns int) string {
	runes := []rune(line)
	if columns <= 0 || len(runes) <= columns {
		return line
	}
	return string(runes[:columns])
}
