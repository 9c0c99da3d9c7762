package source

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/internal/objects"
	"github.com/headgate/headgate/internal/config"
	"github.com/headgate/headgate/internal/config/source"
)

const (
	// maxFollowed bounds the audit lines of one change that other programs have made, and maxFollowedText their texts in bytes.
	maxFollowed     = 100
	maxFollowedText = 1 << 20
	// maxFollowedPart bounds each text: many readers of logs take no line above 64 KiB, and the whole text is at the origin.
	maxFollowedPart = 8 << 10
)

// followed writes the audit lines of a change of objects of an origin that headgate cannot write. Their authors are not known.
type followed struct {
	log   *slog.Logger
	by    string
	lines int
	bytes int
}

// add writes the line of one object. An empty text says that there is none.
func (f *followed) add(key source.Key, before, after string) {
	if f.lines++; f.lines > maxFollowed {
		return
	}
	before, after = shortened(before), shortened(after)
	r := source.Record{Address: f.by, Action: "set", Object: key.String(), Before: before, After: after}
	if after == "" {
		r.Action = "delete"
	}
	if f.bytes += len(before) + len(after); f.bytes > maxFollowedText {
		r.Before, r.After = "", ""
	}
	objects.Audit(f.log, &r, nil)
}

// shortened gives a text, or its beginning and its size.
func shortened(text string) string {
	if len(text) <= maxFollowedPart {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:maxFollowedPart], ""), len(text))
}

func (f *followed) end() {
	if more := f.lines - maxFollowed; more > 0 {
		f.log.Warn("audit: a change has further objects, which have no line of their own", "address", f.by,
			"objects", more)
	}
}

// auditFollowed writes the audit lines of what a source that can only be read has changed. The first objects are no change.
func (f *Follower) auditFollowed(former, next *config.Objects) {
	if f.Writer() != nil || !former.Known() || former == next {
		return
	}
	lines := followed{log: f.host.Log, by: f.settings.Place()}
	for object := range next.Sourced {
		if was, found := former.Get(object.Key); !found || was.Origin == config.FromFile || was.Text != object.Text {
			before := ""
			if found && was.Origin != config.FromFile {
				before = was.Text
			}
			lines.add(object.Key, before, object.Text)
		}
	}
	for object := range former.Sourced {
		if now, found := next.Get(object.Key); !found || now.Origin == config.FromFile {
			lines.add(object.Key, object.Text, "")
		}
	}
	lines.end()
}

// AuditFile writes the audit lines of what a reload has changed in the file's rules, plans and customers.
func AuditFile(log *slog.Logger, former, next *config.Config) {
	began := time.Now()
	before, after := former.ObjectTexts(), next.ObjectTexts()
	lines := followed{log: log, by: next.FileName()}
	for key, text := range after {
		if before[key] != text {
			lines.add(key, before[key], text)
		}
	}
	for key, text := range before {
		if _, kept := after[key]; !kept {
			lines.add(key, text, "")
		}
	}
	lines.end()
	log.Debug("the objects of the file were compared", "took", time.Since(began).String())
}
