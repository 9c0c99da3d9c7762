package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/testkit/property"
)

// offered finds the forms that a fault of a text names: quoted texts, and lists of methods.
func offered(fault string) (texts, lists []string) {
	_, fix, found := strings.Cut(fault, ": write ")
	if !found {
		return nil, nil
	}
	fix, _, _ = strings.Cut(fix, "\n") // The line of the file follows.
	for _, quoted := range regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).FindAllString(fix, -1) {
		if text, err := strconv.Unquote(quoted); err == nil {
			texts = append(texts, text)
		}
	}
	if list := regexp.MustCompile(`^\[.*?\]`).FindString(fix); list != "" {
		lists = append(lists, list)
	}
	return texts, lists
}

// TestOfferedFormsAreAccepted draws texts that look like patterns, and checks that every form that their faults offer is accepted.
func TestOfferedFormsAreAccepted(t *testing.T) {
	load := func(match string) error {
		_, err := LoadText("f", []byte("version: 1\nrules: [{name: a, match: {"+match+"}, key: [ip], limits: [1/m]}]\n"))
		return err
	}
	check := func(t interface{ Fatalf(string, ...any) }, field, text string) {
		err := load(fmt.Sprintf(field, strconv.Quote(text)))
		if err == nil || !strings.Contains(err.Error(), "looks like a pattern") && !strings.Contains(err.Error(), "is not one method") {
			return
		}
		texts, lists := offered(err.Error())
		for _, form := range texts {
			if again := load(fmt.Sprintf(field, strconv.Quote(form))); again != nil {
				t.Fatalf("%q: the fault %v offers %q, which gives %v", text, err, form, again)
			}
			if strings.HasPrefix(field, "path") && strings.HasPrefix(form, "=") && strings.HasSuffix(form, "/*") {
				t.Fatalf("%q: the fault %v offers %q, which never applies", text, err, form)
			}
		}
		for _, form := range lists {
			if again := load("methods: " + form); again != nil {
				t.Fatalf("%q: the fault %v offers %s, which gives %v", text, err, form, again)
			}
		}
	}
	const methods = "methods: [%s]"
	for _, row := range [][2]string{
		{"path: %s", "/users/{id}/*"},
		{"path: %s", `/api/\d+`},
		{"path: %s", `/a\b/{id}`},
		{"path: %s", "/..;/{id}"},
		{"headers: {x-a: %s}", "/a $"},
		{methods, "get|post"},
		{methods, "GET,brew"},
		{methods, "(get|GET)"},
	} {
		check(t, row[0], row[1])
	}
	property.Check(t, func(t *property.T) {
		field := property.SampledFrom([]string{"path: %s", "headers: {x-a: %s}", "descriptors: {a: %s}", "domain: %s", methods}).Draw(t, "field")
		text := property.StringMatching(`(/|/a/)?(get|[a-c=!~^*{}\[\]()|.+?$:;/<>\\d -]){1,8}(/\*|post|,PUT)?`).Draw(t, "text")
		check(t, field, text)
	})
}
