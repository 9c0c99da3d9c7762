package config

import (
	"strings"
	"time"

	"github.com/headgate/headgate/config/field"
)

// The ways to write a value, as JSON Schema has them. Where a schema cannot say all
// that a reader checks, it lets pass more and never less: an editor that marks what
// is right is of no use. Patterns mean the same to ECMAScript and to Go.

// scalarTypes are the values that are read as they are written: a name may be 404.
func scalarTypes() []string { return []string{"string", "number", "boolean"} }

// text is any single value, or one that pattern, unless it is "", finds right. Texts
// have least to most characters; a most of 0 is no bound.
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

// written is a text of a form of its own, which is never a number.
func (o *outline) written(preset, pattern string) {
	if o != nil {
		o.form(orNone(preset), map[string]any{"type": "string", "pattern": pattern})
	}
}

// orNone gives no default for "".
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

// number is a whole number. A preset out of its bounds is none.
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

// numbers is one of a few numbers; preset is one of them, or nil.
func (o *outline) numbers(preset any, all []int) {
	if o != nil {
		o.form(preset, map[string]any{"enum": all})
	}
}

// words is one of a few words.
func (o *outline) words(preset string, all []string) {
	if o != nil {
		o.form(orNone(preset), map[string]any{"enum": all})
	}
}

// duration is a length of time. 0 needs no unit.
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

// list is a list of least to most entries.
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

// What texts look like that rule's parsers, and ours, read. A test holds them
// against the parsers.
const (
	elementPattern  = `([0-9]+(\.[0-9]*)?|\.[0-9]+)`
	durationPattern = `^(` + elementPattern + `(ns|us|µs|μs|ms|s|m|h|d))+$`
	zeroPattern     = `^(0|(` + elementPattern + `(ns|us|µs|μs|ms|s|m|h|d))+)$`
	periodPattern   = `(us|µs|μs|ms|s|m|h|d)`
	limitPattern    = `^[0-9]+/(` + periodPattern + `|(` + elementPattern + periodPattern + `)+)$`
	percentPattern  = `^[0-9]+%$`
	keyPattern      = `^(all|ip|xff_ip|user_ip|region|path|method|host|mtls_subject|(header|cookie|jwt|descriptor):.+)$`
	clientPattern   = `^(ip|xff_ip|user_ip|region|path|method|host|mtls_subject|(header|cookie|jwt|descriptor):.+)$`
	networkPattern  = `^[0-9A-Fa-f:.]+(/[0-9]+)?$`
	peerPattern     = `^(unix|[0-9A-Fa-f:.]+(/[0-9]+)?)$`
	adminPattern    = `^(off|.*:[0-9]+)$`
	frontPattern    = `^(.*:[0-9]+|unix:/.*|systemd(:.+)?)$`
	storePattern    = `^(memory|rediss?(\+(cluster|sentinel))?://.+|memcached://.+)$`
	upstreamPattern = `^([A-Za-z][A-Za-z0-9+.-]*://.+|unix:/.*)$`
	namePattern     = `^[A-Za-z0-9._:-]+$`
	pathPattern     = `^(/|$)`
	locationPattern = `^(/|https?://)`
	markPattern     = `^[!-~]([ -~]*[!-~])?$`
	headerPattern   = "^" + letterPattern
	costPattern     = "^" + costHeaderPrefix + letterPattern
	letterPattern   = "[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
)
