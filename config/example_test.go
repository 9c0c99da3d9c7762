package config_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate/headgate/config"
	"github.com/headgate/headgate/guard"
	"github.com/headgate/headgate/middleware/httplimit"
	"github.com/headgate/headgate/store/memory"
)

// A program that counts only in memory makes the store itself, and links no client of a
// shared store. Other programs call open.Guard of package config/open.
func ExampleConfig_GuardConfig() {
	c, err := config.Parse("headgate.yaml", []byte("version: 1\nrules: [{name: all, key: [all], limits: [2/1h]}]\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := memory.New(c.StoreConfig())
	if err != nil {
		fmt.Println(err)
		return
	}
	described, err := c.GuardConfig(store, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := guard.New(described)
	if err != nil {
		fmt.Println(err)
		return
	}
	service := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	handler := httplimit.New(g, httplimit.Options{})(service)
	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 429
}
