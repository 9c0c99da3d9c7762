package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/guard/refusal"
	"github.com/headgate/headgate/internal/config/field"
	"github.com/headgate/headgate/internal/errortype"
	"github.com/headgate/headgate/internal/readfile"
)

// bodyFile is the file of a rule's on_exceed.body_file. Its Template is read at each reload, in place of template.
type bodyFile struct {
	at       string // the path of the field
	path     string
	response refusal.Response
	template *refusal.Template
}

// response reads what a refused client gets in place of the problem document.
func (s *section) response(x *guard.Exceed) {
	var r refusal.Response
	var file bodyFile
	oneOf(s, s.declare("style", field.Taken, "Body of a refusal: problem is a problem document; html a page for clients that accept "+
		"HTML, and a problem document for others; openai, anthropic and s3 the errors of these APIs."),
		&r.Style, choicesOf(refusal.Styles()))
	s.outline.field(s.declare("body", field.Taken, "Body of a refusal, with placeholders like {retry_after}. At most 64 KiB.")).
		text("", "", 1, refusal.MaxBody)
	body, hasBody := s.textOf("body", &r.Body)
	s.file(s.declare("body_file", field.Taken, "File with the body. A reload reads the file again, also when only the file changes."),
		&file.path)
	s.outline.field(s.declare("content_type", field.Taken, "Type of the body, like text/html. Values are escaped for it.")).
		text("", "", 1, 0)
	_, _ = s.textOf("content_type", &r.ContentType)
	headers := s.responseHeaders(&r)
	named, hasFile := s.given("body_file")
	switch {
	case s.blamedAny("style", "body", "body_file", "content_type", "headers"):
		return
	case hasBody && body.text() == "":
		s.fault(body, "is empty", "write the body, or remove the field")
		return
	case hasBody && hasFile:
		s.fault(named, "has no effect with body", "remove one of them")
		return
	case hasFile && (s.sourced || s.complete):
		s.fault(named, "is not possible with a source, whose rules could name any file", "write the text in body")
		return
	case hasFile:
		r.Body = standIn(r.ContentType)
	case r.Style == refusal.Problem && r.Body == "" && r.ContentType == "" && len(r.Headers) == 0:
		return
	}
	template, err := refusal.New(r)
	if err != nil {
		s.responseFault(err, headers, hasFile)
		return
	}
	x.Response = template
	if hasFile {
		file.at, file.response, file.template = s.pathOf("body_file"), r, template
		s.bodies = append(s.bodies, &file)
	}
}

// standIn is a body in place of that of a file, which is not read with the configuration.
func standIn(kind string) string {
	if strings.Contains(kind, "json") {
		return "{}"
	}
	return "<a/>"
}

// responseHeaders reads the header fields of a refusal.
func (s *section) responseHeaders(r *refusal.Response) *section {
	h := s.sub(s.declare("headers", field.Taken, "Further header fields of a refusal, with placeholders. At most 16."), "{X-Reason: quota}")
	each := h.outline.each(refusal.MaxHeaders)
	each.text("", "", 1, refusal.MaxHeaderValue)
	for _, name := range h.names {
		v, ok := h.valueOf(name)
		switch {
		case !ok:
		case v.node.Kind != yaml.ScalarNode:
			s.fault(v, "must be one value, not "+kindOf(v.node), "write it like X-Reason: quota")
		default:
			r.Headers = append(r.Headers, refusal.Header{Name: name, Value: v.text()})
		}
	}
	return h
}

// responseFault notes the error of refusal.New.
func (s *section) responseFault(err error, headers *section, hasFile bool) {
	bad, found := errortype.As[*refusal.FieldError](err)
	if !found {
		s.fault(s.self, err.Error(), "compare it with docs/configuration.md")
		return
	}
	at := value{path: s.pathOf(bad.Field)}
	switch {
	case bad.Field == "headers" && bad.Header != "":
		at = headers.nameOf(bad.Header)
		at.path = headers.pathOf(bad.Header)
		s.fault(at, bad.Problem, bad.Fix)
	case s.has(bad.Field):
		s.faultAt(value{path: at.path, node: s.fields[bad.Field].value}, bad.Offset, bad.Problem, bad.Fix)
	case hasFile && bad.Field == "body":
		s.fault(s.keyOf("body_file"), bad.Problem, bad.Fix)
	default:
		at.node = s.self.node
		s.fault(at, bad.Problem, bad.Fix)
	}
}

// rulesWithBodies returns the rules with the bodies of their files.
func (c *Config) rulesWithBodies() ([]guard.Rule, error) {
	if len(c.bodies) == 0 {
		return c.Rules, nil
	}
	rules := slices.Clone(c.Rules)
	for _, b := range c.bodies {
		template, err := b.read()
		if err != nil {
			return nil, &FileError{b.at, err}
		}
		for i := range rules {
			if rules[i].Exceed.Response == b.template {
				rules[i].Exceed.Response = template
			}
		}
	}
	return rules, nil
}

func (b *bodyFile) read() (*refusal.Template, error) {
	text, err := readfile.Head(b.path, refusal.MaxBody+1)
	if err != nil {
		return nil, err
	}
	r := b.response
	r.Body = string(text)
	if r.Body == "" {
		return nil, fmt.Errorf("%s is empty: write the body of refusals", b.path)
	}
	template, err := refusal.New(r)
	if bad, found := errortype.As[*refusal.FieldError](err); found {
		line := 1 + strings.Count(r.Body[:min(bad.Offset, len(r.Body))], "\n")
		return nil, fmt.Errorf("%s:%d: %s: %s", b.path, line, bad.Problem, bad.Fix)
	}
	return template, err
}
