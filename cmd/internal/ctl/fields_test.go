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
		{[]string{`overrides["192.0.2.1"].limits=[5/s]`}, "overrides:\n  192.0.2.1:\n    limits: [5/s]\n"},
		{[]string{`overrides['a.b=c'].limits=[5/s]`, `overrides["a\"]b"].burst=`}, "overrides:\n  a.b=c:\n    limits: [5/s]\n  a\"]b:\n    burst: null\n"},
		{[]string{`["x"].y["z"]=1`}, "x:\n  y:\n    z: 1\n"},
		{[]string{`overrides["7"].burst=1`, "a.8=true"}, "overrides:\n  '7':\n    burst: 1\na:\n  '8': true\n"},
		{nil, "{}\n"},
		{[]string{"overrides.192.0.2.1.limits=[5/s]", "overrides.192=1"}, "written twice"},
		{[]string{`overrides.["a"]=1`}, "leave out the dot"},
		{[]string{`overrides["a]=1`}, "brackets have a name in quotes"},
		{[]string{`overrides[a]=1`}, "brackets have a name in quotes"},
		{[]string{`overrides[""]=1`}, "brackets have a name in quotes"},
		{[]string{`overrides["a"]b=1`}, "write FIELD=VALUE"},
		{[]string{`overrides["a"]`}, "write FIELD=VALUE"},
		{[]string{"a:b=1"}, `write other names in brackets and quotes`},
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
