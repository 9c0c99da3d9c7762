package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// consolePage is the console of an instance in a browser.
type consolePage struct {
	t    *testing.T
	tab  context.Context
	base string // like http://127.0.0.1:9902

	mu       sync.Mutex
	problems []string // what the browser has complained about
}

// openConsole opens a view, like overview.
func openConsole(t *testing.T, admin, view string) *consolePage {
	t.Helper()
	c := &consolePage{t: t, tab: browse(t), base: "http://" + admin}
	c.do(chromedp.Navigate("about:blank"))
	if err := chromedp.Listen(c.tab, c.note); err != nil {
		t.Fatal(err)
	}
	cdpCall(c, log.Enable, cdp.Empty{})
	cdpCall(c, network.Enable, network.EnableParams{})
	cdpCall(c, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	c.size(1440, "light")
	c.do(chromedp.Navigate(c.base + "/console/#/" + view))
	return c
}

// cdpCall sends a command to the browser.
func cdpCall[P, R any](c *consolePage, command cdp.Command[P, R], parameters P) R {
	c.t.Helper()
	got, err := chromedp.Call(c.tab, command, parameters)
	if err != nil {
		c.t.Fatalf("%s: %v", command.Method, err)
	}
	return got
}

func (c *consolePage) do(steps ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	if err := chromedp.Do(c.tab, steps...); err != nil {
		c.t.Fatal(err)
	}
}

// note collects errors, violations of the policy, and requests to other places than the instance. An answer with a status of failure is
// none of them: what an instance does not have is a 404.
func (c *consolePage) note(event any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += ": " + e.ExceptionDetails.Exception.Description
		}
		c.problems = append(c.problems, text)
	case *runtime.EventConsoleAPICalled:
		c.problems = append(c.problems, fmt.Sprintf("console.%s", e.Type))
	case *log.EventEntryAdded:
		if e.Entry.Source != log.EntrySourceNetwork {
			c.problems = append(c.problems, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	case *cdppage.EventJavascriptDialogOpening:
		c.problems = append(c.problems, "a dialog of a script: "+e.Message)
	case *network.EventRequestWillBeSent:
		if at := e.Request.URL; !strings.HasPrefix(at, c.base+"/") && at != "about:blank" {
			c.problems = append(c.problems, "a request to "+at)
		}
	}
}

// check reports what the browser has complained about.
func (c *consolePage) check(about string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, problem := range c.problems {
		c.t.Errorf("%s: %s", about, problem)
	}
	c.problems = nil
}

// size gives the page a width and a scheme of colours.
func (c *consolePage) size(width int64, scheme string) {
	c.t.Helper()
	cdpCall(c, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 500})
	cdpCall(c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
}

// valueOf evaluates an expression in the page.
func valueOf[T any](c *consolePage, expression string) T {
	c.t.Helper()
	got, err := chromedp.Run(c.tab, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		c.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// until waits until a condition holds in the page.
func (c *consolePage) until(condition string) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(30 * time.Millisecond) {
		if valueOf[bool](c, "Boolean("+condition+")") {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s does not hold after %v in\n%s", condition, patience, valueOf[string](c, "location.href + '\\n' + document.body.innerText"))
		}
	}
}

// show leads to a route, like keys, and waits until the page has drawn its view.
func (c *consolePage) show(route string) {
	c.t.Helper()
	view, _, _ := strings.Cut(route, "?")
	view, _, _ = strings.Cut(view, "/")
	valueOf[string](c, fmt.Sprintf("location.hash = %q", "#/"+route))
	c.until(fmt.Sprintf("document.querySelector('main.view-%s > *') && !document.querySelector('.boot')", view))
}

// keys sends keys, as an operator types them.
func (c *consolePage) keys(text string) {
	c.t.Helper()
	c.do(chromedp.KeyEvent(text))
}

const (
	keyTab    = "\t"
	keyEnter  = "\r"
	keyEscape = "\x1b"
)

// tabTo presses the tab key until the element with the focus fulfills a condition, with the name e for the element.
func (c *consolePage) tabTo(condition string) {
	c.t.Helper()
	for range 150 {
		if valueOf[bool](c, "Boolean(((e) => "+condition+")(document.activeElement))") {
			return
		}
		c.keys(keyTab)
	}
	c.t.Fatalf("the tab key does not reach %s in\n%s", condition, valueOf[string](c, "document.body.innerText"))
}

// axeRules are the rules of the accessibility checker that the page fulfills.
const axeRules = `{runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"], resultTypes: ["violations"]}`

// violations runs axe-core beside the page, in a world of its own: the policy of the page forbids scripts of others.
func (c *consolePage) violations() []string {
	c.t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "console", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		c.t.Fatalf("%v: run make deps", err)
	}
	frame := cdpCall(c, cdppage.GetFrameTree, cdp.Empty{}).FrameTree.Frame.ID
	world := cdpCall(c, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: frame, WorldName: "axe"}).ExecutionContextID
	evaluate := func(expression string) json.RawMessage {
		got := cdpCall(c, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ContextID: world, AwaitPromise: new(true), ReturnByValue: new(true)})
		if got.ExceptionDetails != nil {
			c.t.Fatalf("axe-core: %s", got.ExceptionDetails.Text)
		}
		return json.RawMessage(got.Result.Value)
	}
	evaluate(string(source) + ";0")
	text := evaluate("axe.run(document, " + axeRules + ").then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 200) + ' ' + n.failureSummary)))")
	var all []string
	if err := json.Unmarshal(text, &all); err != nil {
		c.t.Fatalf("%v: %s", err, text)
	}
	return all
}

// burden sends requests to a proxy until the test ends: in each round one for each pair of client and path.
func burden(t *testing.T, proxy string, every time.Duration, requests [][2]string) {
	t.Helper()
	burdenPaced(t, proxy, func() time.Duration { return every }, requests)
}

func burdenPaced(t *testing.T, proxy string, every func() time.Duration, requests [][2]string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, Timeout: patience}
	wg.Go(func() {
		for turn := 0; ctx.Err() == nil; turn++ {
			one := requests[turn%len(requests)]
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+proxy+one[1], http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header["X-Client-Id"] = []string{one[0]}
			if answer, err := client.Do(req); err == nil {
				_ = answer.Body.Close()
			}
			select {
			case <-ctx.Done():
			case <-time.After(every()):
			}
		}
	})
}
