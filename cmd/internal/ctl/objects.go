package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/ctl/terminal"
	"github.com/headgate/headgate/internal/config/source"
)

// Change says how an object is changed.
type Change struct {
	// Revision is that of the object which the caller has read. nil reads it now, so that no change between this read
	// and the write is lost.
	Revision *int64
	// DryRun only checks the change.
	DryRun bool
	// Reason is for the record.
	Reason string
	// NoWait does not wait until the change is in force in the instance.
	NoWait bool
}

func objectPage(kind source.Kind, query url.Values) string {
	return "/api/v1/" + kind.Section() + "?" + query.Encode()
}

// listPage is the highest number of objects that an instance gives at a time.
const listPage = "1000"

// ListObjects prints all rules, plans or customers, page by page. With JSON, each page is a document.
func (c *Instance) ListObjects(ctx context.Context, out io.Writer, kind source.Kind) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		terminal.Rowf(w, "NAME\tREVISION\tIN\tTEXT\n")
	}
	query := url.Values{"limit": {listPage}}
	for {
		text, err := c.call(ctx, http.MethodGet, objectPage(kind, query), "")
		if err != nil {
			return err
		}
		var page admin.Objects
		if err := c.decode(text, &page); err != nil {
			return err
		}
		if c.JSON {
			_, err = out.Write(text)
		} else {
			err = writeObjects(w, page.Objects)
		}
		if err != nil || page.Next == "" {
			return err
		}
		query.Set("after", page.Next)
	}
}

// maxTextColumns bounds the text of an object in a table.
const maxTextColumns = 80

func writeObjects(w *tabwriter.Writer, all []admin.Object) error {
	for i := range all {
		o, revision := &all[i], "-"
		if o.Revision > 0 {
			revision = strconv.FormatInt(o.Revision, 10)
		}
		line := terminal.Printable(flat(o.Text))
		terminal.Rowf(w, "%s\t%s\t%s\t%s\n", terminal.Printable(o.Name), revision, o.Origin, terminal.Shorten(line, maxTextColumns))
	}
	return w.Flush()
}

// flat gives a text in one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

const aboutFile = "in the configuration file"

// GetObject prints an object: its text, below a comment with its revision. SetObject takes the same text after CutHead. On a
// terminal, characters that are not printable are escaped.
func (c *Instance) GetObject(ctx context.Context, out io.Writer, key source.Key) error {
	text, err := c.call(ctx, http.MethodGet, objectPage(key.Kind, url.Values{"name": {key.Name}}), "")
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := out.Write(text)
		return err
	}
	var o admin.Object
	if err := c.decode(text, &o); err != nil {
		return err
	}
	about := aboutFile
	if o.Origin != "file" {
		about = fmt.Sprintf("revision %d", o.Revision)
	}
	head := headOf(key, about)
	if !c.Terminal { // SetObject takes the same bytes.
		_, err = io.WriteString(out, head+o.Text)
		return err
	}
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(o.Text, "\n"), "\n") {
		lines = append(lines, printableTabs(strings.TrimSuffix(line, "\r")))
	}
	shown := strings.Join(lines, "\n")
	if shown != strings.TrimSuffix(o.Text, "\n") {
		shown = "# some characters are shown in escaped form: redirect the output to a file to have the text itself\n" + shown
	}
	_, err = fmt.Fprintf(out, "%s%s\n", head, shown)
	return err
}

// headOf is the line above the text of an object. CutHead removes it.
func headOf(key source.Key, about string) string {
	return "# " + terminal.Printable(key.String()) + ", " + about + "\n"
}

// CutHead removes the line that GetObject prints above the text of an object.
func CutHead(key source.Key, text string) string {
	first, rest, found := strings.Cut(text, "\n")
	about, isHead := strings.CutPrefix(first, "# "+terminal.Printable(key.String())+", ")
	digits, isRevision := strings.CutPrefix(about, "revision ")
	_, err := strconv.ParseUint(digits, 10, 63)
	if !found || !isHead || about != aboutFile && (!isRevision || err != nil) {
		return text
	}
	return rest
}

// printableTabs is printable, and keeps tabs.
func printableTabs(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = terminal.Printable(parts[i])
	}
	return strings.Join(parts, "\t")
}

// SetObject writes an object. With merge, only the fields of the text are replaced, and those with null are removed.
func (c *Instance) SetObject(ctx context.Context, out io.Writer, key source.Key, text string, merge bool, how *Change) error {
	method := http.MethodPut
	if merge {
		method = http.MethodPatch
	}
	return c.change(ctx, out, method, key, text, how)
}

// DeleteObject removes an object.
func (c *Instance) DeleteObject(ctx context.Context, out io.Writer, key source.Key, how *Change) error {
	return c.change(ctx, out, http.MethodDelete, key, "", how)
}

func (c *Instance) change(ctx context.Context, out io.Writer, method string, key source.Key, text string, how *Change) error {
	query := how.query()
	query.Set("name", key.Name)
	revision, err := c.revisionOf(ctx, key, how)
	if err != nil {
		return err
	}
	query.Set("revision", strconv.FormatInt(revision, 10))
	answer, err := c.call(ctx, method, objectPage(key.Kind, query), text)
	if err != nil {
		return err
	}
	var w admin.Written
	if err := c.decode(answer, &w); err != nil {
		return err
	}
	if c.JSON {
		_, err = out.Write(answer)
	} else {
		err = writeWritten(out, key, &w)
	}
	if err != nil || w.InForce || w.DryRun || how.NoWait {
		return err
	}
	return c.notInForce(key, &w)
}

// notInForce is the error of a change that was made and that the instance does not decide by.
func (c *Instance) notInForce(key source.Key, w *admin.Written) error {
	name := terminal.Printable(key.String())
	if w.Held != "" {
		return fmt.Errorf("ctl: %s: the change of %s was written, but is held back, and the former version stays in force: %s",
			c.Admin, name, terminal.Printable(w.Held))
	}
	return fmt.Errorf("ctl: %s: the change of %s was written, and is not in force yet: headgate ctl status says why; "+
		"--no-wait does not wait for it", c.Admin, name)
}

func (how *Change) query() url.Values {
	query := url.Values{}
	if how.DryRun {
		query.Set("dry_run", "1")
	}
	if how.Reason != "" {
		query.Set("reason", how.Reason)
	}
	if how.NoWait {
		query.Set("wait", "0")
	}
	return query
}

// revisionOf gives the revision that the caller has read, or reads it. An object that does not exist has 0.
func (c *Instance) revisionOf(ctx context.Context, key source.Key, how *Change) (int64, error) {
	if how.Revision != nil {
		return *how.Revision, nil
	}
	text, err := c.call(ctx, http.MethodGet, objectPage(key.Kind, url.Values{"name": {key.Name}}), "")
	if failed := new(FailedError); errors.As(err, &failed) && failed.Code == admin.CodeNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var o admin.Object
	err = c.decode(text, &o)
	return o.Revision, err
}

func writeWritten(out io.Writer, key source.Key, w *admin.Written) (err error) {
	name := terminal.Printable(key.String())
	switch {
	case w.DryRun && w.After == "":
		_, err = fmt.Fprintf(out, "dry run: %s can be deleted\n", name)
	case w.DryRun:
		_, err = fmt.Fprintf(out, "dry run: %s can be written\n", name)
	case w.After == "":
		_, err = fmt.Fprintf(out, "%s is deleted\n", name)
	default:
		_, err = fmt.Fprintf(out, "%s has revision %d\n", name, w.Revision)
	}
	return err
}

// FailedError is a call that the instance has not answered.
type FailedError struct {
	admin.Failure

	at string // the instance
}

// Error gives the problem and the fix, with one fault a line.
func (e *FailedError) Error() string {
	lines := []string{"ctl: " + e.at + ": " + e.Failure.Error}
	for i := range e.Faults {
		lines = append(lines, e.Faults[i].Text)
	}
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\n")
	}
	return strings.Join(lines, "\n")
}

// call sends a request under /api/v1 and returns the body of a 200. The error is a *FailedError if the instance has
// given a reason. Faults of the text or of the names are a ConfigError.
func (c *Instance) call(ctx context.Context, method, page, body string) ([]byte, error) {
	a, err := c.exchange(ctx, method, page, body, callTimeout)
	switch {
	case err != nil:
		return nil, err
	case a.code == http.StatusOK:
		return a.text, nil
	case a.turnedAway():
		return nil, c.refused(a)
	}
	failed := &FailedError{at: c.Admin}
	if err := json.Unmarshal(a.text, &failed.Failure); err != nil || failed.Code == "" {
		page, _, _ = strings.Cut(page, "?")
		return nil, fmt.Errorf("ctl: %s answers %s to %s: check that it is an admin.listen of the same version", c.Admin, a.status, page)
	}
	if failed.Code == admin.CodeFaults || failed.Code == admin.CodeBadRequest {
		return nil, ConfigError{failed}
	}
	return nil, failed
}

// CheckName says whether an object may have a name.
func CheckName(name string) error {
	if name == "" || len(name) > source.MaxName {
		return fmt.Errorf("the name %.64q has %d bytes: use 1 to %d", name, len(name), source.MaxName)
	}
	return nil
}
