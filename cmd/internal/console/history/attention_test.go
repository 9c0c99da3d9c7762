package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/component"
	"github.com/headgate/headgate/guard/report"
)

// talkative is a component that wants attention without end.
type talkative struct {
	component.Defaults

	level string
	n     int
}

func (c talkative) Attention(add func(admin.Attention)) {
	for i := range c.n {
		add(admin.Attention{Level: c.level, About: "test", Text: fmt.Sprintf("%d %s", i, strings.Repeat("é", 500))})
	}
}

// TestAttention: the worst comes first, with bounds for each component and in total.
func TestAttention(t *testing.T) {
	s := newStage(t, twoRules, 0)
	s.Component.o.Components = func() []component.Component {
		return []component.Component{talkative{level: admin.LevelNote, n: 1}, talkative{level: admin.LevelFault, n: 2}}
	}
	s.waiting = []string{"max_memory", "proxy.listen"}
	s.failures = []admin.ReloadFailure{{Part: "configuration", At: time.Unix(start, 0), Error: "headgate.yaml:3:1: field \"bogus\" is not known"}}
	for range 15 {
		s.second(func() {
			s.allow(0, 3)
			s.deny(0, 1)
			s.deny(1, 1)
			for range 2 {
				s.report.Traffic.Answered(report.OriginService, 500)
			}
		})
	}
	l := s.Component.Live("name", 1, true)
	var got []string
	for _, a := range l.Attention {
		got = append(got, a.Level+" "+a.About+" "+a.Name)
		if len(a.Text) > maxText+3 {
			t.Errorf("a text has %d bytes", len(a.Text))
		}
	}
	want := []string{
		"fault test ", "fault test ", "fault reload configuration", "fault service ", "warning rule search",
		"note test ", "note reload ", "note rule crawl",
	}
	if !slices.Equal(got, want) || l.AttentionTotal != len(want) {
		t.Errorf("got %q, %d in all; want %q", got, l.AttentionTotal, want)
	}
	if !strings.HasPrefix(l.Sentence, "The service fails 29 % of 7 requests/s. Headgate refuses 14 % of 7 requests/s: rule search refuses 1/s") {
		t.Errorf("the sentence is %q", l.Sentence)
	}
	s.Component.o.Components = func() []component.Component {
		return []component.Component{talkative{level: admin.LevelFault, n: 1_000_000}}
	}
	if l := s.Component.Live("name", 1, true); len(l.Attention) != maxAttention || l.AttentionTotal < maxAbout {
		t.Errorf("%d of %d are shown", len(l.Attention), l.AttentionTotal)
	}
	if text, err := s.answer(query{"refused", 50, true}); err != nil || len(text) > maxLive {
		t.Errorf("the answer has %d bytes, %v", len(text), err)
	}
}
