package output_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/lab/output"
)

// hostile are names that a client could choose.
var hostile = []string{
	"</script><script>alert(1)</script>", `"onload="alert(1)`, "a\x00b", "\x1b[2J", "\xff\xfe", "\u202egnp.exe", "&amp;", "</svg>", "]]>", "\ufffe",
}

// TestProgress: a log has a line every ten seconds, a terminal one line that changes and goes away.
func TestProgress(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	run := func(terminal bool) string {
		var b strings.Builder
		now = time.Unix(1000, 0)
		p := output.NewProgress(&b, terminal, func() time.Time { return now })
		for i := range 5 {
			now = now.Add(5 * time.Second)
			p.At(int64(i+1)*10_000, float64(i+1)/5)
		}
		now = now.Add(10 * time.Second)
		p.At(60_000, -1)
		p.End()
		return b.String()
	}
	want := "20,000 requests, 2,000 a second, 40 %, 15s left\n40,000 requests, 2,000 a second, 80 %, 5s left\n60,000 requests, 1,714 a second\n"
	if got := run(false); got != want {
		t.Errorf("a log gets\n%swant\n%s", got, want)
	}
	got := run(true)
	if strings.Contains(got, "\n") || strings.Count(got, "\r") != 8 || !strings.HasSuffix(got, " \r") {
		t.Errorf("a terminal gets %q", got)
	}
}

// TestTable: names stand on the left, figures on the right, and no control character of a name reaches the terminal.
func TestTable(t *testing.T) {
	t.Parallel()
	table := output.Table{Title: "Verdicts", Head: []string{"key", "refused", "share"}, Note: "of 1,000 requests"}
	table.Add("a\x1b[2J", output.Count(12), output.Percent(0.012))
	table.Add("b", output.Count(1_234_567), output.Share(1, 2))
	table.Add("c", output.Count(-1000), output.Share(0, 0))
	var b strings.Builder
	table.Text(&b)
	want := `Verdicts
key         refused   share
a\x1b[2J         12  1.20 %
b         1,234,567  50.0 %
c            -1,000       -
of 1,000 requests
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// TestPageIsSafe: whatever a name is, the page keeps its tags, and has no script and no reference.
func TestPageIsSafe(t *testing.T) {
	t.Parallel()
	plain := tagsOf(t, page(t, "a name"))
	for _, name := range hostile {
		text := page(t, name)
		if tags := tagsOf(t, text); tags != plain {
			t.Errorf("%q changes the tags of the page to %s", name, tags)
		}
		for _, r := range text {
			if r < ' ' && r != '\n' || r == '\u202e' {
				t.Errorf("%q brings the character %q into the page", name, r)
			}
		}
		for _, bad := range []string{"<script", "http://", "https://", "url(", "src=", "href="} {
			if strings.Contains(strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, ""), bad) {
				t.Errorf("%q brings %s into the page", name, bad)
			}
		}
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	p := output.NewPage(name)
	p.Heading(name)
	p.Text(name)
	p.Partial(name)
	p.Source(name)
	p.List([]string{name})
	p.List(nil)
	p.Table(&output.Table{Title: name, Head: []string{name}, Rows: [][]string{{name}}, Note: name})
	p.Picture(&output.Picture{Heading: []string{name}, Panels: []output.Panel{{
		Title: name, X: name, Y: name, To: 2,
		Lines: []output.Line{{Name: "count", Color: output.Blue, Points: []output.Point{{X: 0, Y: 1}, {X: 2, Y: 3}}}},
	}}})
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// tagsOf lists the tags of a page with their attributes.
func tagsOf(t *testing.T, text string) string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var b strings.Builder
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		} else if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			b.WriteString(start.Name.Local + "[")
			for _, a := range start.Attr {
				b.WriteString(a.Name.Local + " ")
			}
			b.WriteString("]")
		}
	}
}

// TestPicture: a picture is well-formed SVG, has the same bytes each time, and survives lines without points and without a height.
func TestPicture(t *testing.T) {
	t.Parallel()
	draw := func() string {
		s := output.Picture{Heading: []string{"a line"}, Panels: []output.Panel{
			{Title: "empty", To: 1},
			{Title: "flat", Lines: []output.Line{{Name: "x", Color: output.Grey, Points: []output.Point{{0, 5}, {1, 5}, {2, 5}, {3, 6}}, Steps: true}}, To: 3},
			{Title: "leveled", From: -2, To: 3, Low: -1, High: 1, Level: 0.5, Leveled: true, Lines: []output.Line{
				{Name: "sine", Color: output.Orange, Points: sine()}, {Name: "none", Color: output.Blue},
			}},
		}}
		var b strings.Builder
		if _, err := s.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := draw()
	if text != draw() {
		t.Error("two pictures of one result differ")
	}
	if tags := tagsOf(t, text); !strings.HasPrefix(tags, "svg[") || strings.Count(tags, "path[") < 8 {
		t.Errorf("the tags are %s", tags)
	}
	for _, bad := range []string{"NaN", "Inf", "-0 "} {
		if strings.Contains(text, bad) {
			t.Errorf("the picture has %s", bad)
		}
	}
	if want := `d="M64 `; !strings.Contains(text, want) || strings.Contains(text, "H64V") {
		t.Errorf("the steps do not start at %s", want)
	}
}

func sine() (points []output.Point) {
	for i := range 100 {
		points = append(points, output.Point{X: float64(i)/20 - 2, Y: math.Sin(float64(i) / 5)})
	}
	return points
}

// TestSchema: the schema names each field of a result with its meaning.
func TestSchema(t *testing.T) {
	t.Parallel()
	type row struct {
		Name string  `help:"The name." json:"name"`
		Part float64 `json:"part,omitempty"`
	}
	type result struct {
		Rows    []row          `json:"rows"`
		Partial bool           `json:"partial"`
		Counts  map[string]int `json:"counts"`
		hidden  int
	}
	text, err := output.Schema("A result", result{hidden: 1})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	compact, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"$schema":"https://json-schema.org/draft/2020-12/schema","additionalProperties":false,"properties":{` +
		`"counts":{"additionalProperties":{"type":"integer"},"type":"object"},"partial":{"type":"boolean"},` +
		`"rows":{"items":{"additionalProperties":false,"properties":{"name":{"description":"The name.","type":"string"},"part":{"type":"number"}},` +
		`"required":["name"],"type":"object"},"type":"array"}},"required":["rows","partial","counts"],"title":"A result","type":"object"}`
	if string(compact) != want {
		t.Errorf("got  %s\nwant %s", compact, want)
	}
	var b strings.Builder
	if err := output.WriteJSON(&b, result{Rows: []row{{Name: "<a>"}}}); err != nil || !strings.Contains(b.String(), `"\u003ca\u003e"`) {
		t.Errorf("got %s, %v", b.String(), err)
	}
}
