package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"
)

// document is an OpenAPI document.
type document struct {
	tree              map[string]any
	requests, answers validator.Validator
}

// read reads a document, and checks it against the JSON Schema of OpenAPI 3.1. An answer may have no other properties
// than those that the document lists. For clients, the document allows others, which later versions may add.
func read(t *testing.T, text []byte) *document {
	t.Helper()
	d := &document{requests: validatorOf(t, text)}
	if valid, wrong := d.requests.ValidateDocument(); !valid {
		t.Fatalf("the document is not valid: %s", reasons(wrong))
	}
	if err := json.Unmarshal(text, &d.tree); err != nil {
		t.Fatal(err)
	}
	closeObjects(d.tree)
	closed, err := json.Marshal(d.tree)
	if err != nil {
		t.Fatal(err)
	}
	d.answers = validatorOf(t, closed)
	return d
}

func validatorOf(t *testing.T, text []byte) validator.Validator {
	t.Helper()
	parsed, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	v, faults := validator.NewValidator(parsed)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return v
}

// closeObjects refuses further properties in each schema with properties.
func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, named := node["properties"]; named && node["additionalProperties"] == nil {
			node["additionalProperties"] = false
		}
		for _, below := range node {
			closeObjects(below)
		}
	case []any:
		for _, below := range node {
			closeObjects(below)
		}
	}
}

// reasons puts the errors of the validator into one line.
func reasons(all []*errors.ValidationError) string {
	var texts []string
	for _, e := range all {
		texts = append(texts, e.Message+": "+e.Reason)
		for _, s := range e.SchemaValidationErrors {
			texts = append(texts, s.FieldPath+": "+s.Reason)
		}
	}
	return strings.Join(texts, "; ")
}

// judge compares a document with exchanges, and gives all differences.
func judge(t *testing.T, d *document, exchanges []*exchange) (faults []string) {
	t.Helper()
	seen := map[string]bool{}
	mark := func(at string) { seen[at] = true }
	for _, e := range exchanges {
		for _, fault := range d.compare(t, e, mark) {
			faults = append(faults, e.String()+": "+fault)
		}
	}
	d.operations(func(at string, operation map[string]any) {
		d.requestParts(at, operation, everything{}, everything{}, func(part string) {
			if !seen[part] {
				faults = append(faults, "no request has "+part)
			}
		})
		for _, code := range slices.Sorted(maps.Keys(object(operation["responses"]))) {
			d.answerParts(at, operation, code, "", everything{}, everything{}, func(part string) {
				if !seen[part] {
					faults = append(faults, "no answer has "+part)
				}
			})
		}
	})
	return faults
}

// compare compares one exchange with the document, and marks the parts that it has.
func (d *document) compare(t *testing.T, e *exchange, mark func(string)) (faults []string) {
	t.Helper()
	target, err := url.Parse(e.target)
	if err != nil {
		t.Fatal(err)
	}
	at := pointer("/paths", target.Path, strings.ToLower(e.method))
	operation, found := d.at(at)
	if !found {
		return []string{"the document lacks " + at}
	}
	follows, wrong := d.requests.ValidateHttpRequest(e.request(t))
	if follows != e.follows {
		faults = append(faults, fmt.Sprintf("the request follows the document: %t, want %t: %s", follows, e.follows, reasons(wrong)))
	}
	if follows {
		d.requestParts(at, operation, parametersOf(e, target.Query()), decoded([]byte(e.body)), mark)
	}
	answer := e.response()
	defer answer.Body.Close()
	if _, wrong := d.answers.ValidateHttpResponse(e.request(t), answer); len(wrong) > 0 {
		faults = append(faults, "the answer does not follow the document: "+reasons(wrong))
	}
	code, found := codeOf(operation, e.status)
	if !found {
		return append(faults, fmt.Sprintf("%s lacks the status %d", at, e.status))
	}
	return append(faults, d.compareAnswer(at, operation, code, e, mark)...)
}

// compareAnswer compares what the validator does not: the fields of the header, and that there is a body of a known
// type or none.
func (d *document) compareAnswer(at string, operation map[string]any, code string, e *exchange, mark func(string)) (faults []string) {
	_, response := d.resolve(pointer(at, "responses", code), object(object(operation["responses"])[code]))
	media, declared := "", object(response["content"])
	if len(e.answer) > 0 {
		var err error
		if media, _, err = mime.ParseMediaType(e.answerHeader.Get("Content-Type")); err != nil || declared[media] == nil {
			faults = append(faults, fmt.Sprintf("the type of the body is %q, %v", media, err))
		}
	} else if len(declared) > 0 {
		faults = append(faults, "there is no body")
	}
	fields := map[string]any{}
	for name := range e.answerHeader {
		fields[strings.ToLower(name)] = true
		known := slices.Contains([]string{
			"Content-Type", "Content-Length", "Date", "Cache-Control", "X-Content-Type-Options", markName,
		}, name)
		for described := range object(response["headers"]) {
			known = known || strings.EqualFold(described, name)
		}
		if !known {
			faults = append(faults, "the document lacks the field "+name)
		}
	}
	var value any = string(e.answer)
	if strings.HasSuffix(media, "json") {
		value = decoded(e.answer)
	}
	d.answerParts(at, operation, code, media, fields, value, mark)
	return faults
}

// codeOf gives the name of the response with a status: the status, or its class as in 4XX.
func codeOf(operation map[string]any, status int) (code string, found bool) {
	responses := object(operation["responses"])
	for _, code = range []string{fmt.Sprint(status), fmt.Sprintf("%dXX", status/100)} {
		if responses[code] != nil {
			return code, true
		}
	}
	return "", false
}

// parametersOf has the parameters of a request, by their names in lower case.
func parametersOf(e *exchange, query url.Values) map[string]any {
	all := map[string]any{}
	for _, values := range []map[string][]string{e.header, query} {
		for name, value := range values {
			all[strings.ToLower(name)] = value[0]
		}
	}
	return all
}

// decoded decodes JSON. It gives nil for a text that is none.
func decoded(text []byte) (value any) {
	if json.Unmarshal(text, &value) != nil {
		return nil
	}
	return value
}
