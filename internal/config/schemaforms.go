package config

import (
	"strings"
	"time"

	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/rule"
)

// The following methods describe how a value is written, in JSON Schema. The schema may accept
// more than the reader does, but never less: an editor must not mark a correct value. Patterns
// must mean the same in ECMAScript and in Go.

// scalarTypes are the types of values that a reader takes as text: a name may be 404.
func scalarTypes() []string { return []string{"string", "number", "boolean"} }

// text describes a text that matches pattern. A pattern of "" matches any text. The text has least
// to most characters, and a most of 0 means no bound.
func (o *outline) text(preset, pattern string, least, most int) {
	if o == nil {
		return
	}
	form := map[string]any{"type": scalarTypes()}
	if pattern != "" {
		form["pattern"] = pattern
	}
	if least > 0 {
		form["minLength"] = least
	}
	if most > 0 {
		form["maxLength"] = most
	}
	o.form(orNone(preset), form)
}

// written describes a text that matches pattern and is never a number.
func (o *outline) written(preset, pattern string) {
	if o != nil {
		o.form(orNone(preset), map[string]any{"type": "string", "pattern": pattern})
	}
}

// orNone returns nil, which means no default, for "".
func orNone(preset string) any {
	if preset == "" {
		return nil
	}
	return preset
}

func (o *outline) boolean(preset bool) {
	if o != nil {
		o.form(preset, map[string]any{"type": "boolean"})
	}
}

// number describes a whole number. A preset outside its bounds means no default.
func (o *outline) number(preset, least, most int64) {
	if o == nil {
		return
	}
	var value any
	if preset >= least && preset <= most {
		value = preset
	}
	o.form(value, map[string]any{"type": "integer", "minimum": least, "maximum": most})
}

// numbers describes one of a few numbers. preset is the default, or nil.
func (o *outline) numbers(preset any, all []int) {
	if o != nil {
		o.form(preset, map[string]any{"enum": all})
	}
}

// words describes one of a few words.
func (o *outline) words(preset string, all []string) {
	if o != nil {
		o.form(orNone(preset), map[string]any{"enum": all})
	}
}

// duration describes a duration. The value 0 needs no unit.
func (o *outline) duration(preset, least, most time.Duration) {
	if o == nil {
		return
	}
	form := map[string]any{"type": "string", "pattern": durationPattern}
	if least == 0 {
		form = map[string]any{"type": []string{"string", "integer"}, "pattern": zeroPattern, "minimum": 0, "maximum": 0}
	}
	var value any
	if preset > 0 && preset >= least && preset <= most {
		value = field.FormatDuration(preset)
	}
	o.form(value, form)
}

func (o *outline) size(preset int64) {
	if o == nil {
		return
	}
	var units []string
	for _, unit := range field.SizeUnits() {
		units = append(units, unit.Word)
	}
	o.form(field.FormatSize(preset), map[string]any{"type": "string", "pattern": "^[0-9]+(" + strings.Join(units, "|") + ")$"})
}

// list describes a list of least to most entries.
func (o *outline) list(least, most int) {
	if o == nil {
		return
	}
	form := map[string]any{"type": "array", "maxItems": most}
	if least > 0 {
		form["minItems"] = least
	}
	o.form(nil, form)
}

// Patterns of the texts that parsers of package rule and of this package read. A test compares
// them with the parsers.
const (
	elementPattern  = `([0-9]+(\.[0-9]*)?|\.[0-9]+)`
	durationPattern = `^(` + elementPattern + `(ns|us|µs|μs|ms|s|m|h|d))+$`
	zeroPattern     = `^(0|(` + elementPattern + `(ns|us|µs|μs|ms|s|m|h|d))+)$`
	periodPattern   = `(us|µs|μs|ms|s|m|h|d)`
	limitPattern    = `^[0-9]+/(day|week|month|year|` + periodPattern + `|(` + elementPattern + periodPattern + `)+)$`
	percentPattern  = `^[0-9]+%$`
	networkPattern  = `^[0-9A-Fa-f:.]+(/[0-9]+)?$`
	peerPattern     = `^(unix|[0-9A-Fa-f:.]+(/[0-9]+)?)$`
	adminPattern    = `^(off|.*:[0-9]+)$`
	listenerPattern = `^(off|.*:[0-9]+|unix:/.*|systemd(:.+)?)$`
	frontPattern    = `^(.*:[0-9]+|unix:/.*|systemd(:.+)?)$`
	upstreamPattern = `^([A-Za-z][A-Za-z0-9+.-]*://.+|unix:/.*)$`
	callerPattern   = `^[A-Za-z0-9._-]{1,64}$`
	digestPattern   = `^sha256:[0-9A-Fa-f]{64}$`
	untilPattern    = `^[0-9]{4}-[0-9]{2}-[0-9]{2}(T.+)?$`
	namePattern     = `^[A-Za-z0-9._:-]+$`
	pathPattern     = `^(=?/|re:.|[A-Z-]+ +/|$)`
	locationPattern = `^(/|https?://)`
	markPattern     = `^[!-~]([ -~]*[!-~])?$`
	headerPattern   = "^" + letterPattern
	costPattern     = "^" + costHeaderPrefix + letterPattern
	settlePattern   = "^(" + bytesPrefix + "(request|response|both)$|(" + costHeaderPrefix + "|" + trailerPrefix + ")" +
		letterPattern + ")"
	costBytesPattern = "^(estimate$|" + bytesPrefix + "request$|" + costHeaderPrefix + letterPattern + ")"
	letterPattern    = "[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
)

// The patterns of key parts, with the part all and without it.
var (
	keyPattern    = partPattern(true)  //nolint:gochecknoglobals // because it is a constant from a table
	clientPattern = partPattern(false) //nolint:gochecknoglobals // because it is a constant from a table
)

// partPattern makes the pattern of the forms of package rule.
func partPattern(all bool) string {
	var patterns []string
	for _, f := range rule.PartForms() {
		if all || f.Word != allPart {
			patterns = append(patterns, f.Pattern)
		}
	}
	return "^(" + strings.Join(patterns, "|") + ")$"
}

// allPart is the part that names no client.
const allPart = "all"
