package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/config/source"
)

// blamed gives the keys that faults name, each once.
func blamed(faults ObjectFaults) string {
	var all []string
	for i, f := range faults {
		if i == 0 || faults[i-1].Key != f.Key {
			all = append(all, f.Key.String())
		}
	}
	return strings.Join(all, " ")
}

// TestBlame: a customer that is faulty or alone with its algorithm is at fault, and not those after it.
func TestBlame(t *testing.T) {
	const log, window = "{limits: {api_calls: [{limit: 7/1h, algorithm: sliding_log}]}}", "{limits: {api_calls: [{limit: 9/1h}]}}"
	for _, row := range []struct{ name, first, others, want string }{
		{"another algorithm", log, window, "customers/a"},
		{"another algorithm in other words", "{note: x, limits: {api_calls: [{limit: 7/1h, algorithm: sliding_log}]}}", window, "customers/a"},
		{"another algorithm and a fault", "{plan: fre, limits: {api_calls: [{limit: 7/1h, algorithm: sliding_log}]}}", window, "customers/a"},
		{"another period with the same number, and a fault", "{plan: fre, limits: {api_calls: [{limit: 7/256h}]}}", window, "customers/a"},
		{"a fault", "{plan: fre}", window, "customers/a"},
	} {
		c := source.Change{All: true, Objects: []source.Object{
			object("plans/free", "{quotas: {api_calls: [{limit: 200/30d}]}}"), object("customers/a", row.first),
		}}
		for n := range 5 {
			c.Objects = append(c.Objects, object(fmt.Sprint("customers/b", n), row.others))
		}
		_, faults := objects(t, sourcedFile).With(c)
		if got := blamed(faults); got != row.want {
			t.Errorf("%s: %s are at fault, want %s: %v", row.name, got, row.want, faults)
		}
	}
}

// TestBlameKeepsWhatIsInForce: customers in force decide against a majority of new ones.
func TestBlameKeepsWhatIsInForce(t *testing.T) {
	in, faults := objects(t, sourcedFile).With(source.Change{All: true, Objects: []source.Object{
		object("plans/free", "{quotas: {api_calls: [{limit: 200/30d}]}}"), object("customers/z", "{limits: {api_calls: [{limit: 9/1h}]}}"),
	}})
	if faults != nil {
		t.Fatal(faults)
	}
	c := source.Change{}
	for n := range 3 {
		c.Objects = append(c.Objects, object(fmt.Sprint("customers/b", n), "{limits: {api_calls: [{limit: 7/1h, algorithm: sliding_log}]}}"))
	}
	_, faults = in.With(c)
	if got := blamed(faults); got != "customers/b0 customers/b1 customers/b2" {
		t.Errorf("%s are at fault: %v", got, faults)
	}
}
