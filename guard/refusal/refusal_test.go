package refusal_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/headgate/headgate/guard/refusal"
	"github.com/headgate/headgate/internal/testkit/race"
)

// hostile are texts that clients send to break out of a body.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</title><script>alert(1)</script>`,
	`","admin":true,"x":"`, `\u0022`, `\`, `]]>`, `--><script>alert(1)</script>`, `&lt;script&gt;`, "a\r\nSet-Cookie: stolen=1", "\x00\x1b[31mred",
	"\u202egnp.exe", "\u2028\u2029", "\xff\xfe<script>", "+ADw-script+AD4-", `{retry_after}`, `javascript:alert(1)`, strings.Repeat("<", 5000),
}

func values(text string) *refusal.Values {
	return &refusal.Values{
		RetryAfter: 60, Reset: 90, Remaining: 7, Status: 429, Limit: []byte("3/1m"), Policy: text, Title: text, Reason: "over_limit",
		ErrorType: "rate_limit_error", Detail: []byte(text), Key: []byte(text), RequestID: text,
	}
}

func compiled(t *testing.T, r refusal.Response) *refusal.Template {
	t.Helper()
	made, err := refusal.New(r)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestPlaceholders: each placeholder has its value, and all other braces are text.
func TestPlaceholders(t *testing.T) {
	body := "{retry_after} {reset} {remaining} {status} {limit} 1{policy} 2{title} {reason} {error_type} 3{detail} 4{key} 5{request_id} {} {A} { policy } {{}"
	made := compiled(t, refusal.Response{Body: body, ContentType: "text/plain"})
	want := "60 90 7 429 3/1m 1p 2p over_limit rate_limit_error 3p 4p 5p {} {A} { policy } {{}"
	if got := string(made.AppendBody(nil, values("p"))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, name := range refusal.Placeholders() {
		if !strings.Contains(body, "{"+name+"}") {
			t.Errorf("the test lacks {%s}", name)
		}
	}
}

// TestEscaping: with any value, a body has the same structure, and a header field stays one field.
func TestEscaping(t *testing.T) {
	page := compiled(t, refusal.Response{ContentType: "text/html", Body: "<title>{policy}</title><p>{key}</p><textarea>{request_id}</textarea>"})
	object := compiled(t, refusal.Response{ContentType: "application/json", Body: `{"key": "{key}", "wait": {retry_after}, "id": "{request_id}"}`})
	document := compiled(t, refusal.Response{ContentType: "application/xml", Body: `<e><k>{key}</k><![CDATA[{request_id}]]></e>`})
	text := compiled(t, refusal.Response{ContentType: "text/plain", Body: "{key}"})
	field := compiled(t, refusal.Response{Headers: []refusal.Header{{"X-Key", "k={key}; id={request_id}"}, {"X-Policy", `"{policy}"`}}})
	for _, sent := range hostile {
		v := values(sent)
		if got := string(page.AppendBody(nil, v)); strings.Count(got, "<") != 6 || strings.Count(got, ">") != 6 || strings.ContainsAny(got, `"'`+"\x00\x1b\u202e") {
			t.Errorf("%q as HTML: %s", sent, got)
		}
		var read map[string]any
		got := object.AppendBody(nil, v)
		if err := json.Unmarshal(got, &read); err != nil || len(read) != 3 || read["wait"] != 60.0 || bytes.ContainsAny(got, "<>&") {
			t.Errorf("%q as JSON: %s (error %v)", sent, got, err)
		}
		if elements, err := elements(document.AppendBody(nil, v)); err != nil || elements != 2 {
			t.Errorf("%q as XML: %d elements, error %v", sent, elements, err)
		}
		if got := string(text.AppendBody(nil, v)); strings.ContainsAny(got, "\x00\x1b\r\n\u202e\u2028") {
			t.Errorf("%q as text: %q", sent, got)
		}
		field.Header(v, func(name string, lines []string) {
			value := strings.TrimSuffix(strings.TrimPrefix(lines[0], `"`), `"`)
			if len(lines) != 1 || strings.ContainsAny(value, "\"\\\r\n\x00") || name == "X-Key" && strings.Count(value, ";")+strings.Count(value, "=") != 3 {
				t.Errorf("%q in a field: %s: %q", sent, name, lines)
			}
			if len(value) > 2*3*512+len("k=; id=") {
				t.Errorf("%s has %d bytes, want the value cut", name, len(value))
			}
		})
	}
}

func elements(document []byte) (n int, err error) {
	for d := xml.NewDecoder(strings.NewReader(string(document))); ; {
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
		if _, starts := token.(xml.StartElement); starts {
			n++
		}
	}
}

// TestPlaces: a placeholder with text stands only where escaping holds. Numbers stand anywhere.
func TestPlaces(t *testing.T) {
	for body, good := range map[string]bool{
		`<p>{key}</p>`: true, `a < b {key}`: true, `<a href="x>y">{key}</a>`: true, `<a title='>'>{key}`: true, `<!-- a -->{key}`: true,
		`<meta http-equiv=refresh content="{retry_after}"><script>wait({retry_after})</script>`: true,
		`<title>{key}</title>`: true, `<style>p{}</style>{key}`: true, `<script>a</script >{key}`: true, `<!-->{key}`: true, `<!doctype html>{key}`: true,
		`<script>wait("{key}")</script>`: false, `<SCRIPT>{key}</SCRIPT>`: false, `<a href="{key}">`: false, `<a {key}>`: false, `<{key}>`: true,
		`<p title={key}>`: false, `<!-- {key} -->`: false, `<!--> <script> --> {key}`: false, `<a x"y>{key}`: true, `<a x="y>{key}`: false,
		`<style>{key}</style>`: false, `<script></scripted>{key}`: false, `<script><!--<script></script>{key}`: false, `<plaintext>{key}`: false,
		`<svg><title><script>{key}`: false, `</p {key}>`: false, `<?{key}>`: false, `<iframe>{key}</iframe>`: false, `<a = "x>{key}`: true, `<a/="{key}">`: false,
	} {
		_, err := refusal.New(refusal.Response{ContentType: "text/html", Body: body})
		if (err == nil) != good {
			t.Errorf("%s: error %v, want none: %v", body, err, good)
		}
	}
	for body, good := range map[string]bool{
		`<e>{key}</e>`: true, `<e wait="{retry_after}"/>`: true, `<e a="{key}"/>`: false, `<e><!-- {key} --></e>`: false, `<e>`: false, `{key}`: false,
		`<html xmlns="http://www.w3.org/1999/xhtml"><script>{key}</script></html>`: false, `<e/>{key}`: false, `<?xml version="1.0"?><e/>`: true,
	} {
		if _, err := refusal.New(refusal.Response{ContentType: "image/svg+xml", Body: body}); (err == nil) != good {
			t.Errorf("%s: error %v, want none: %v", body, err, good)
		}
	}
	for body, good := range map[string]bool{`{"a": "{key}"}`: true, `{"a": {key}}`: false, `{"a": {status}}`: true, `{"{key}": 1}`: true, `nil`: false} {
		if _, err := refusal.New(refusal.Response{ContentType: "application/problem+json", Body: body}); (err == nil) != good {
			t.Errorf("%s: error %v, want none: %v", body, err, good)
		}
	}
}

// TestFaults: an error names the part of the Response, and what to write.
func TestFaults(t *testing.T) {
	header := func(name, value string) refusal.Response {
		return refusal.Response{Headers: []refusal.Header{{Name: name, Value: value}}}
	}
	text := func(body string) refusal.Response { return refusal.Response{Body: body, ContentType: "text/plain"} }
	for want, r := range map[string]refusal.Response{
		"did you mean {retry_after}?":                         text("{retry_aftr}"),
		"use one of {retry_after}, {reset}":                   text("{zzzzzzzzzz}"),
		"use at most 65536":                                   text(strings.Repeat("a", refusal.MaxBody+1)),
		"use at most 64":                                      text(strings.Repeat("{key}", refusal.MaxPlaceholders+1)),
		"is not UTF-8":                                        text("\xff"),
		"write the type of the body":                          {Body: "a"},
		"has no effect without a body":                        {ContentType: "text/html"},
		"has no effect with style s3":                         {Style: refusal.S3, Body: "a", ContentType: "text/plain"},
		"has no effect with style html":                       {Style: refusal.HTML, Body: "a", ContentType: "text/plain"},
		"the style 99 is not known":                           {Style: 99},
		"is not a media type":                                 {Body: "a", ContentType: "text"},
		"has the charset utf-7":                               {Body: "a", ContentType: "text/html; charset=utf-7"},
		"which cannot be escaped for this type":               {Body: "{key}", ContentType: "text/javascript"},
		"is not the name of a header":                         header("X Y", "a"),
		"headers.X-Reason has a value that is empty":          header("X-Reason", ""),
		"is not printable ASCII":                              header("X-Reason", "a\r\nb"),
		"use at most 1024":                                    header("X-Reason", strings.Repeat("a", 1025)),
		"headers.X-Reason has the placeholder {nothing}":      header("X-Reason", "{nothing}"),
		"headers.retry-after is written by Headgate":          header("retry-after", "1"),
		"headers.Content-Length is written with the body":     header("Content-Length", "1"),
		"headers.Transfer-Encoding belongs to the connection": header("Transfer-Encoding", "chunked"),
		"headers.Access-Control-Allow-Origin is written by":   header("Access-Control-Allow-Origin", "*"),
		"headers.RateLimit is written by Headgate":            header("RateLimit", "1"),
		"headers.x-a is set twice":                            {Headers: []refusal.Header{{"X-A", "1"}, {"x-a", "2"}}},
		"headers has 17 fields":                               {Headers: make([]refusal.Header, 17)},
	} {
		if _, err := refusal.New(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want one with %q", err, want)
		}
	}
}

// TestStyles: each ready body is of its type, with any value.
func TestStyles(t *testing.T) {
	for style, want := range map[refusal.Style]string{
		refusal.OpenAI:    `{"error":{"message":"m","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`,
		refusal.Anthropic: `{"type":"error","error":{"type":"rate_limit_error","message":"m"},"request_id":"m"}`,
		refusal.S3:        "<Error><Code>SlowDown</Code><Message>m</Message><RequestId>m</RequestId></Error>",
		refusal.HTML:      "<h1>m</h1>\n<p>m</p>",
	} {
		made := compiled(t, refusal.Response{Style: style})
		if got := string(made.AppendBody(nil, values("m"))); !strings.Contains(got, want) || !made.HasBody("text/html") {
			t.Errorf("style %s: got %s, want %s", style, got, want)
		}
	}
	made := compiled(t, refusal.Response{Style: refusal.HTML})
	for accept, want := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, "application/json, TEXT/HTML;q=0.1": true,
		"*/*": false, "": false, "application/json": false, "text/html;q=0": false, "text/html; level=1; q=0.000": false, "text/*": false,
	} {
		if got := made.HasBody(accept); got != want {
			t.Errorf("Accept %q gets a page: %v, want %v", accept, got, want)
		}
	}
	if compiled(t, refusal.Response{Headers: []refusal.Header{{"X-A", "1"}}}).HasBody("text/html") {
		t.Error("header fields alone replace the problem document")
	}
}

// TestAllocations: a body, and fields without placeholders, allocate nothing.
func TestAllocations(t *testing.T) {
	if race.On {
		t.Log("the race detector allocates: run without -race")
		return
	}
	made := compiled(t, refusal.Response{
		ContentType: "text/html", Body: "<p>{retry_after} {limit} {policy} {detail} {key} {request_id}</p>", Headers: []refusal.Header{{"X-A", "1"}},
	})
	v, b := values(`<a href="b">`), make([]byte, 0, 4096)
	h := map[string][]string{}
	set := func(name string, lines []string) { h[name] = lines }
	if n := testing.AllocsPerRun(100, func() {
		b = made.AppendBody(b[:0], v)
		made.Header(v, set)
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// FuzzPlaces: no value of a placeholder changes the number of tags of a page that New accepts, as a slow reader counts them.
func FuzzPlaces(f *testing.F) {
	for _, seed := range []string{`<p>{key}</p>`, `<a title="{key}">`, `<script>{key}</script>`, `<!--{key}-->`, `a<{key}`, `<p title='x>{key}`} {
		f.Add(seed, `"><b>'`)
	}
	f.Fuzz(func(t *testing.T, body, sent string) {
		made, err := refusal.New(refusal.Response{ContentType: "text/html", Body: body})
		if err != nil {
			return
		}
		plain, attacked := made.AppendBody(nil, values("x")), made.AppendBody(nil, values(sent))
		for _, mark := range []string{"<", ">", `"`, "'", "`"} {
			if strings.Count(string(plain), mark) != strings.Count(string(attacked), mark) {
				t.Errorf("%q with %q gives %q", body, sent, attacked)
			}
		}
	})
}
