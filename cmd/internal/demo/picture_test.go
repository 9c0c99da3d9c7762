package demo

import (
	"bytes"
	"encoding/xml"
	"slices"
	"strings"
	"testing"
)

// TestCells: in a bar, the own share, borrowed units, and what is free or lent stand on each other from the base at 100.
func TestCells(t *testing.T) {
	for _, c := range []struct {
		why  string
		row  row
		want []box
	}{
		{"a client uses its share", row{own: 10, admitted: 10}, []box{{8, 80, 20, "own"}}},
		{"a busy client borrows", row{own: 10, borrowed: 5, admitted: 15, refused: 2}, []box{{8, 80, 20, "own"}, {8, 70, 10, "borrowed"}}},
		{"an idle client lends", row{own: 3, lent: 7, admitted: 2}, []box{{8, 96, 4, "own"}, {8, 94, 2, "free"}, {8, 80, 14, "lent"}}},
		{"lent units that came back are its own", row{own: 1, lent: 9, admitted: 8}, []box{{8, 84, 16, "own"}, {8, 80, 4, "lent"}}},
		{"a long bar ends", row{own: 1000, admitted: 1000}, []box{{8, 48, 52, "own"}}},
	} {
		var p picture
		p.cell(8, 100, &c.row)
		got := slices.DeleteFunc(p.Boxes, func(b box) bool { return b.Height == 0 })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
		if refused := len(p.Texts) == 1 && p.Texts[0].Text == "−2"; refused != (c.row.refused == 2) {
			t.Errorf("%s: the texts are %v", c.why, p.Texts)
		}
	}
}

// TestPicture: the picture is well-formed, and shows each act, client and cycle of the story, but not its repetition.
func TestPicture(t *testing.T) {
	var out bytes.Buffer
	s := &screen{Options: Options{Clients: Clients(), Acts: Story(), Picture: &out, Out: new(bytes.Buffer)}, capacity: 40}
	for cycle := range 25 {
		if err := s.show(cycle, []row{{client: "A", own: 10, admitted: 10}, {client: "D", own: 4, lent: 6}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := drawPicture(&out, s.shown, s.Clients, s.Acts, s.capacity); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(out.Bytes(), new(struct{})); err != nil {
		t.Fatalf("%v in\n%s", err, &out)
	}
	for text, want := range map[string]int{
		`<rect class="own"`: 19 + 1, `<rect class="lent"`: 19 + 1, `<rect class="free"`: 19 + 1, `class="act"`: 6, `class="caption"`: 6, `class="name"`: 4,
		"&lt;": 0, "twenty times its share": 1,
	} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("%q stands %d times in the picture, want %d", text, got, want)
		}
	}
}
