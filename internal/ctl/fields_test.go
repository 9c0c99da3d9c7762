package ctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFieldsText(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"plan=paid"}, "plan: paid\n"},
		{[]string{"note=trade fair, 2027", "plan="}, "note: trade fair, 2027\nplan: null\n"},
		{[]string{"hard.api_calls=300", "hard.exports="}, "hard:\n  api_calls: 300\n  exports: null\n"},
		{[]string{"limits.api_calls=[{limit: 5/30d}]"}, "limits:\n  api_calls: [{limit: 5/30d}]\n"},
		{[]string{"month_starts=15", `note="a: b"`}, "month_starts: 15\nnote: \"a: b\"\n"},
		{[]string{"note=a=b"}, "note: a=b\n"},
		{nil, "{}\n"},
		{[]string{"plan"}, "write FIELD=VALUE"},
		{[]string{"=paid"}, "write FIELD=VALUE"},
		{[]string{"a..b=1"}, "the name of a field has letters"},
		{[]string{"a b=1"}, "the name of a field has letters"},
		{[]string{"plan=a", "plan=b"}, "written twice"},
		{[]string{"hard=1", "hard.a=2"}, "written twice"},
		{[]string{"note=a\n---\nb"}, "is no YAML"},
		{[]string{"note=[a"}, "is no YAML"},
	} {
		got, err := FieldsText(c.args)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%q: got %q, want %q", c.args, got, c.want)
		}
	}
}

func TestReadText(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(long, make([]byte, 64<<10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, stdin, want string }{
		{"-", "plan: paid", "plan: paid"},
		{"-", strings.Repeat("x", 64<<10+1), "an object is shorter"},
		{long, "", "an object is shorter"},
		{filepath.Join(t.TempDir(), "none"), "", "no such file or directory: write the name of a file, or -"},
	} {
		got, err := ReadText(c.name, strings.NewReader(c.stdin))
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: got %.80q, want %q", c.name, got, c.want)
		}
	}
}

func TestPlanText(t *testing.T) {
	for name, want := range map[string]string{"paid": "plan: paid\n", "12": "plan: '12'\n"} {
		if got, err := PlanText(name); got != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestSourceSchema(t *testing.T) {
	sql := func(name string) string { return "CREATE SCHEMA " + name }
	for name, valid := range map[string]bool{
		"headgate": true, "_a1": true, "": false, "1a": false, "a-b": false, "a;b": false, "A": false, strings.Repeat("a", 49): false,
	} {
		if text, err := SourceSchema(name, sql); (err == nil) != valid || valid && text != "CREATE SCHEMA "+name {
			t.Errorf("%q: got %q, %v", name, text, err)
		}
	}
}
