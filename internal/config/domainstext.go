package config

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/rule"
)

// FormatDomains writes a configuration with the section domains. Parse returns the same domains for
// it, if they come from ParseEnvoy or Parse.
func FormatDomains(domains []guard.Domain) []byte {
	w := &domainsText{}
	w.line(0, "version: 1")
	w.line(0, "domains:")
	for i := range domains {
		d := &domains[i]
		w.line(1, yamlText(rule.FormatTreeName(d.Name))+":")
		if d.Fallback != guard.FallbackError {
			w.line(2, "fallback: "+d.Fallback.String())
		}
		if len(d.Descriptors) == 0 {
			w.line(2, "descriptors: []")
			continue
		}
		w.descriptors(2, d.Descriptors)
	}
	return w.text.Bytes()
}

// domainsText writes lines of YAML. Each level of indentation has two spaces.
type domainsText struct {
	text bytes.Buffer
	// dash is set if the next line begins an entry of a list.
	dash bool
}

func (w *domainsText) line(indent int, text string) {
	margin := strings.Repeat("  ", indent)
	if w.dash {
		margin, w.dash = margin[2:]+"- ", false
	}
	w.text.WriteString(margin + text + "\n")
}

// descriptors writes one level of a tree and the levels below.
func (w *domainsText) descriptors(indent int, all []guard.Descriptor) {
	w.line(indent, "descriptors:")
	for i := range all {
		d := &all[i]
		w.dash = true
		w.fields(indent+2, d)
		if len(d.Descriptors) > 0 {
			w.descriptors(indent+2, d.Descriptors)
		}
	}
}

// fields writes the fields of a descriptor, without the next level.
func (w *domainsText) fields(indent int, d *guard.Descriptor) {
	w.line(indent, "key: "+yamlText(rule.FormatTreeName(d.Key)))
	if d.Value != "" {
		w.line(indent, "value: "+yamlText(rule.FormatTreeValue(d.Value, d.Literal)))
	}
	if d.Leaf != nil {
		w.leaf(indent, d.Leaf)
	}
	for _, flag := range [...]struct {
		name string
		set  bool
	}{
		{"share_threshold", d.ShareThreshold}, {"detailed_metric", d.DetailedMetric}, {"value_to_metric", d.ValueToMetric},
	} {
		if flag.set {
			w.line(indent, flag.name+": true")
		}
	}
}

func (w *domainsText) leaf(indent int, l *guard.Leaf) {
	if l.Unlimited {
		w.line(indent, "unlimited: true")
	} else {
		w.limits(indent, l.Policies)
	}
	if l.Name != "" {
		w.line(indent, "name: "+yamlText(l.Name))
	}
	if len(l.Replaces) > 0 {
		names := make([]string, len(l.Replaces))
		for i, name := range l.Replaces {
			names[i] = yamlText(name)
		}
		w.line(indent, "replaces: ["+strings.Join(names, ", ")+"]")
	}
	if l.Mode != guard.Enforce {
		w.line(indent, "mode: "+l.Mode.String())
	}
	if l.QuotaMode {
		w.line(indent, "quota_mode: true")
	}
	if len(l.Metadata) > 0 {
		w.line(indent, "metadata: "+yamlValue(l.Metadata))
	}
}

// limits writes the limits of a descriptor, which have one algorithm and one burst.
func (w *domainsText) limits(indent int, policies []headgate.Policy) {
	if len(policies) == 0 {
		return
	}
	texts := make([]string, len(policies))
	for i, p := range policies {
		texts[i] = p.Limit.String()
	}
	text := strings.Join(texts, ", ")
	if len(policies) > 1 {
		text = "[" + text + "]"
	}
	w.line(indent, "limits: "+text)
	if a := policies[0].Algorithm; a != headgate.FixedWindow {
		w.line(indent, "algorithm: "+a.String())
	}
	if burst := policies[0].Limit.Burst; burst > 0 {
		w.line(indent, fmt.Sprintf("burst: %d", burst))
	}
}

// yamlText writes a text without quotes if it is a plain word or path in every version of YAML.
func yamlText(text string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	plain := text != "" && strings.ContainsRune(letters+"/", rune(text[0])) && strings.Trim(text, letters+"0123456789-_./") == ""
	switch strings.ToLower(text) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		plain = false
	}
	if plain {
		return text
	}
	return strconv.Quote(text) // YAML has all escapes that Go writes for valid UTF-8.
}

// yamlValue writes a value of JSON on one line.
func yamlValue(v any) string {
	var parts []string
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, yamlText(name)+": "+yamlValue(v[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, entry := range v {
			parts = append(parts, yamlValue(entry))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	default:
		return "null"
	}
}
