package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/internal/testkit/race"
)

// envoyTexts reads texts in the format of envoyproxy/ratelimit, with the names a.yaml, b.yaml and so on.
func envoyTexts(merge bool, texts ...string) ([]guard.Domain, error) {
	var files []EnvoyFile
	for i, text := range texts {
		files = append(files, EnvoyFile{fmt.Sprintf("%c.yaml", 'a'+i), []byte(text)})
	}
	return ParseEnvoy(files, merge)
}

// TestEnvoyFiles compares the limits, or all faults, of each file in testdata/envoy. Most files are
// those of the tests and examples of envoyproxy/ratelimit, and their names tell the fault.
func TestEnvoyFiles(t *testing.T) {
	for _, file := range testdata(t, "envoy") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			domains, err := ParseEnvoy([]EnvoyFile{{filepath.Base(file), read(t, file)}}, false)
			if err != nil {
				compare(t, file, err.Error()+"\n")
				return
			}
			var b bytes.Buffer
			if err := WriteDomainTable(&b, domains); err != nil {
				t.Fatal(err)
			}
			compare(t, file, b.String())
		})
	}
}

// TestConvertedFilesDecideTheSame checks that the converted form of each valid file, and of each valid
// section domains, has the same domains.
func TestConvertedFilesDecideTheSame(t *testing.T) {
	converted := 0
	check := func(file string, domains []guard.Domain) {
		converted++
		text := FormatDomains(domains)
		c, err := Parse(file, text)
		if err != nil {
			t.Errorf("%s is refused:\n%v\n%s", file, err, text)
		} else if !reflect.DeepEqual(c.Domains, domains) {
			t.Errorf("%s gives\n%+v\nwant\n%+v\n%s", file, c.Domains, domains, text)
		}
	}
	for _, file := range testdata(t, "envoy") {
		if domains, err := ParseEnvoy([]EnvoyFile{{file, read(t, file)}}, false); err == nil {
			check(file, domains)
		}
	}
	for _, file := range []string{"testdata/ok/domains.yaml", "testdata/ok/literals.yaml"} {
		c, err := Parse("f", read(t, file))
		if err != nil {
			t.Fatal(err)
		}
		check(file, c.Domains)
	}
	if converted < 12 {
		t.Errorf("only %d files are valid, want more", converted)
	}
}

func TestEnvoyUnits(t *testing.T) {
	for unit, want := range map[string]time.Duration{
		"second": time.Second, "MINUTE": time.Minute, "Hour": time.Hour, "day": day, "week": 7 * day, "month": 30 * day,
		"year": 365 * day, "90s": 90 * time.Second, "1h30m": 90 * time.Minute,
	} {
		domains, err := envoyTexts(false, "domain: a\ndescriptors: [{key: k, rate_limit: {unit: "+unit+", requests_per_unit: 5}}]\n")
		if err != nil {
			t.Errorf("%s: %v", unit, err)
			continue
		}
		if got := domains[0].Descriptors[0].Leaf.Policies; !reflect.DeepEqual(got, []headgate.Policy{window(5, want)}) {
			t.Errorf("%s: got %+v, want %s", unit, got, want)
		}
	}
}

// TestEnvoyCalendarMonths: with month: calendar, a month of the file is one of the calendar. Other
// units, other files and other algorithms keep their lengths.
func TestEnvoyCalendarMonths(t *testing.T) {
	limits := "descriptors:\n- {key: k, rate_limit: {unit: MONTH, requests_per_unit: 5}}\n" +
		"- {key: l, rate_limit: {unit: year, requests_per_unit: 5}}\n" +
		"- {key: m, rate_limit: {unit: month, requests_per_unit: 5, algorithm: token_bucket}}\n"
	domains, err := envoyTexts(false, "domain: a\nmonth: calendar\n"+limits, "domain: b\nmonth: 30d\n"+limits, "domain: c\n"+limits)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []headgate.Limit{
		{Count: 5, Calendar: headgate.Month}, {Count: 5, Per: 30 * day}, {Count: 5, Per: 30 * day},
	} {
		d := domains[i].Descriptors
		if got := d[0].Leaf.Policies[0].Limit; got != want {
			t.Errorf("domain %s: a month is %s, want %s", domains[i].Name, got, want)
		}
		if got := d[1].Leaf.Policies[0].Limit.Per; got != 365*day {
			t.Errorf("domain %s: a year is %s", domains[i].Name, got)
		}
		if got := d[2].Leaf.Policies[0].Limit.Per; got != 30*day {
			t.Errorf("domain %s: a month of a token bucket is %s", domains[i].Name, got)
		}
	}
	all, err := EnvoyOptions{CalendarMonths: true}.Parse([]EnvoyFile{
		{"a", []byte("domain: a\n" + limits)}, {"b", []byte("domain: b\nmonth: 30d\n" + limits)},
	})
	if err != nil || all[0].Descriptors[0].Leaf.Policies[0].Limit.Calendar != headgate.Month ||
		all[1].Descriptors[0].Leaf.Policies[0].Limit.Per != 30*day {
		t.Errorf("calendar months by default: %+v, %v", all, err)
	}
	if _, err := envoyTexts(false, "domain: a\nmonth: julian\n"+limits); err == nil || !strings.Contains(err.Error(), "calendar") {
		t.Errorf("an unknown month: %v", err)
	}
}

// TestEnvoyMerge checks a domain in several files.
func TestEnvoyMerge(t *testing.T) {
	one := "domain: a\ndescriptors:\n- {key: k, value: v}\n- {key: l}\n"
	two := "domain: a\ndescriptors:\n- {key: m}\n- {key: k, value: v}\n"
	_, err := envoyTexts(false, one, strings.Replace(two, "{key: k, value: v}", "{key: n}", 1))
	if want := "b.yaml:1:9: domain: a.yaml has the domain \"a\" already: use another name, or set MERGE_DOMAIN_CONFIG"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("two files of one domain: got %v, want %s", err, want)
	}
	domains, err := envoyTexts(true, one, strings.Replace(two, "value: v", "value: w", 1))
	if err != nil || len(domains) != 1 || len(domains[0].Descriptors) != 4 || domains[0].Descriptors[2].Key != "m" {
		t.Errorf("merged: got %+v and the error %v, want one domain of four descriptors", domains, err)
	}
	_, err = envoyTexts(true, one, two)
	if want := "b.yaml:4:19: descriptors[1].value: appears twice among its siblings"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a value in both files: got %v, want %s", err, want)
	}
}

// TestEnvoyTellsAllFaults checks that the faults of all files come at once, up to a bound.
func TestEnvoyTellsAllFaults(t *testing.T) {
	_, err := envoyTexts(false, "domain: a\nb: c\n", "'", "")
	for _, want := range []string{"a.yaml:2:1: field \"b\"", "b.yaml:1:1: the quote", "c.yaml:1:1: the file is empty: begin with domain: NAME"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	many := "domain: a\ndescriptors:\n" + strings.Repeat("- 5\n", 90)
	_, err = envoyTexts(true, many, many)
	faults := err.(Faults) //nolint:errorlint // A panic fails the test.
	if n := len(faults); n != maxFaults+1 || faults[maxFaults].Problem != "there are more than 100 faults" {
		t.Errorf("got %d faults, the last one %v, want %d", n, faults[n-1], maxFaults+1)
	}
}

// TestHostileEnvoyFiles checks files that are made to take long.
func TestHostileEnvoyFiles(t *testing.T) {
	if race.On {
		return // It has one goroutine.
	}
	bomb := "domain: a\ndescriptors:\n- &n0 {key: k}\n"
	for i := range 30 {
		bomb += fmt.Sprintf("- &n%d {key: k%d, descriptors: [*n%d, *n%d]}\n", i+1, i, i, i)
	}
	deep := "domain: a\n"
	for i := range 33 {
		deep += strings.Repeat("  ", i) + "descriptors:\n" + strings.Repeat("  ", i) + "- key: k\n"
	}
	for name, row := range map[string][2]string{
		"aliases of aliases": {bomb, "repeat more than"},
		"deep":               {deep, "is the level 33"},
		"deeper":             {"domain: a\ndescriptors: " + strings.Repeat("[", 500), "nested deeper"},
		"large":              {"domain: a\n# " + strings.Repeat("x", maxFileBytes), "larger than 8MiB"},
		"same keys":          {"domain: a\ndescriptors:\n" + strings.Repeat("- {key: k}\n", 50_000), "appears twice"},
	} {
		if _, err := envoyTexts(false, row[0]); err == nil || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%s: got %.300v, want %s", name, err, row[1])
		}
	}
}

// TestLoadEnvoy checks which files of a folder are read.
func TestLoadEnvoy(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadEnvoy(dir, false); err == nil || !strings.Contains(err.Error(), "has no files") {
		t.Errorf("an empty folder: got %v", err)
	}
	write("..2026/b.yaml", "domain: b\n") // Kubernetes has the files here, and links to them.
	if err := os.Symlink("..2026/b.yaml", filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	write("below/a.yaml", "domain: a\n")
	write(".hidden", "?")
	domains, err := LoadEnvoy(dir, false)
	if err != nil || len(domains) != 2 || domains[0].Name != "b" || domains[1].Name != "a" {
		t.Errorf("got %+v and the error %v, want b and a", domains, err)
	}
	if domains, err := LoadEnvoy(filepath.Join(dir, "b.yaml"), false); err != nil || len(domains) != 1 {
		t.Errorf("one file: got %+v and the error %v", domains, err)
	}
	if _, err := LoadEnvoy(filepath.Join(dir, "none"), false); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: got %v", err)
	}
	write("c.yaml", "domain: c\n# "+strings.Repeat("x", maxFileBytes/2))
	write("d.yaml", "domain: d\n# "+strings.Repeat("x", maxFileBytes/2))
	if _, err := LoadEnvoy(dir, false); err == nil || !strings.Contains(err.Error(), "are larger than 8MiB") {
		t.Errorf("large files: got %.300v", err)
	}
	for name, want := range map[string]bool{"": true, "b.yaml": true, ".hidden": false, "none": false} {
		if got := IsEnvoy(filepath.Join(dir, name)); got != want {
			t.Errorf("%q is in the format of envoyproxy/ratelimit: %t, want %t", name, got, want)
		}
	}
}

// FuzzEnvoy checks that the converted form of every valid file has the same domains.
func FuzzEnvoy(f *testing.F) {
	for _, file := range testdata(f, "envoy") {
		f.Add(read(f, file))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		domains, err := ParseEnvoy([]EnvoyFile{{"f", text}}, false)
		if err != nil {
			return
		}
		converted := FormatDomains(domains)
		c, err := Parse("f", converted)
		if err != nil && strings.Contains(err.Error(), "max_memory") {
			return // The format has no bound of memory.
		}
		if err != nil || !reflect.DeepEqual(c.Domains, domains) {
			t.Errorf("got %+v and the error %v, want %+v\n%s", c, err, domains, converted)
		}
	})
}
