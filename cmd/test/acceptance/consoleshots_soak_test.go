//go:build soak

package acceptance

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"image/png"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shotsVariable names the folder that TestConsoleShots writes the pictures of docs/console.md to.
const shotsVariable = "HEADGATE_CONSOLE_SHOTS"

// maxShot bounds a picture in bytes.
const maxShot = 120_000

const shotsConfiguration = `version: 1
instance: shop-1
max_memory: 64MiB
evaluate: independent
fair_share: {client: header:X-Client-Id, capacity: 44, cycle: 1s}
throttle: {concurrency: 3, deadline: 80ms}
rules:
  - {name: search, match: {path: /v1/search}, key: [header:X-Client-Id], limits: ["9/1s"], algorithm: sliding_window}
  - {name: login, match: {path: /login}, key: [header:X-Client-Id], limits: ["2/1m"], ban: {after: 2/1m, for: 1h}}
  - {name: report, match: {path: /v1/report}, key: [header:X-Client-Id], limits: ["3/1s"], mode: shadow}
proxy: {listen: "127.0.0.1:0", upstream: "%s"}
admin: {listen: "127.0.0.1:0", health: "127.0.0.1:0", console: {actions: true}}
`

// shotsClients are the clients of the pictures, with the mean of their requests in a second.
var shotsClients = []struct {
	name string
	rate float64
	path string
}{
	{"umbrella", 16, "/v1/search"},
	{"umbrella", 6, "/v1/report"},
	{"acme", 12, "/v1/search"},
	{"globex", 9, "/v1/orders"},
	{"initech", 7, "/v1/orders"},
	{"hooli", 5, "/v1/report"},
	{"wonka", 4, "/v1/search"},
	{"stark", 3, "/v1/orders"},
	{"botnet-7", 1.5, "/login"},
}

// TestConsoleShots makes the pictures of docs/console.md: make console-shots. It takes five minutes, for a chart that is full.
func TestConsoleShots(t *testing.T) {
	folder := os.Getenv(shotsVariable)
	if folder == "" {
		t.Fatal("no folder for the pictures: run make console-shots")
	}
	behind := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-time.After(time.Duration(20+len(r.URL.Path)) * time.Millisecond)
	}))
	defer behind.Close()
	i := launch(t, file(t, fmt.Sprintf(shotsConfiguration, behind.URL)))
	for n := range shotsClients {
		one := &shotsClients[n]
		burdenWaves(t, i.Proxy, one.name, one.path, one.rate, float64(n))
	}
	<-time.After(285 * time.Second)
	c := openConsole(t, i.Admin, "overview")
	for _, shot := range []struct {
		name, route, scheme string
		width, height       int64
	}{
		{"overview", "overview", "light", 1280, 960},
		{"clients", "clients", "dark", 1280, 900},
		{"why", "why?who=umbrella&path=/v1/search", "light", 1280, 900},
		{"rule", "rule/search", "dark", 1280, 900},
	} {
		c.size(shot.width, shot.scheme)
		cdpCall(c, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: shot.width, Height: shot.height, DeviceScaleFactor: 1})
		c.show(shot.route)
		<-time.After(4 * time.Second) // for the history, and for answers of other calls
		picture, err := chromedp.Run(c.tab, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		small, err := fewColours(picture)
		if err != nil {
			t.Fatal(err)
		}
		if len(small) > maxShot {
			t.Errorf("%s has %d bytes, at most %d are allowed", shot.name, len(small), maxShot)
		}
		if err := os.WriteFile(filepath.Join(folder, shot.name+".png"), small, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.check("pictures")
}

// burdenWaves sends requests of one client that come in waves.
func burdenWaves(t *testing.T, proxy, client, path string, rate, phase float64) {
	t.Helper()
	began := time.Now()
	pace := func() time.Duration {
		now := rate * (0.5 + 1.3*max(0, math.Sin(time.Since(began).Seconds()/25+phase)))
		return time.Duration(float64(time.Second) / now)
	}
	burdenPaced(t, proxy, pace, [][2]string{{client, path}})
}

// fewColours gives a picture with the 256 colours that it has most, which makes the file three times smaller.
func fewColours(text []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the picture: %w", err)
	}
	bounds := full.Bounds()
	// Of colours that are nearly the same, the most frequent one stands for all.
	counts, alike := map[color.RGBA]int{}, map[color.RGBA]color.RGBA{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int { return cmp.Compare(counts[b], counts[a]) })
	var palette color.Palette
	for _, one := range most {
		rough := color.RGBA{one.R &^ 15, one.G &^ 15, one.B &^ 15, one.A}
		if _, known := alike[rough]; !known && len(palette) < 256 {
			alike[rough], palette = one, append(palette, one)
		}
	}
	small := image.NewPaletted(bounds, palette)
	imagedraw.Draw(small, bounds, full, bounds.Min, imagedraw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		return nil, fmt.Errorf("write the picture: %w", err)
	}
	return out.Bytes(), nil
}
