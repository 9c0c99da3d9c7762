package actions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
)

// TestRing: the last hundred actions stay, with bounded texts, and marks have no keys.
func TestRing(t *testing.T) {
	var r Ring
	(*Ring)(nil).Add(admin.Action{})
	for n := range 150 {
		r.Add(admin.Action{
			Action: "ban", Object: fmt.Sprintf("keys/rule-%d header:X=\"secret\"", n), Caller: "alice", After: strings.Repeat("é", mostText),
			Undo: strings.Repeat("x", mostText+n%2),
		})
	}
	all := r.List()
	if len(all) != most || !strings.HasPrefix(all[0].Object, "keys/rule-149 ") || len(all[0].After) > mostText+8 {
		t.Errorf("%d actions, the newest about %s with %d bytes", len(all), all[0].Object, len(all[0].After))
	}
	if all[0].Undo != "" || all[1].Undo == "" {
		t.Error("a command is cut, or one that fits is left out")
	}
	if marks := r.Marks(3); len(marks) != 3 || marks[0].Text != "ban keys/rule-149" || marks[0].By != "alice" {
		t.Errorf("the marks are %+v", marks)
	}
}

// TestCommand: words are quoted for a shell, and times are those of flags.
func TestCommand(t *testing.T) {
	if got := Command("headgate", "key", "a b", "it's", "", "$(x)", "a=1/s,b"); got != `headgate key 'a b' 'it'\''s' '' '$(x)' a=1/s,b` {
		t.Errorf("the command is %s", got)
	}
	now := time.Now()
	for left, want := range map[time.Duration]string{
		time.Hour: "--for=1h", 90 * time.Minute: "--for=1h30m", 10 * time.Second: "--for=10s", 0: "--for=1s", 3661 * time.Second: "--for=1h1m1s", -time.Hour: "--for=1s",
	} {
		if got := Left(now.Add(left), now); got != want {
			t.Errorf("%v is %s, want %s", left, got, want)
		}
	}
}
