package routers_test

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/mux"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// middlewareFunc is what httplimit.New gives.
type middlewareFunc = func(http.Handler) http.Handler

// placements are the lines of the table in docs/middleware.md, by their names there.
// A line may stand for several configurations of a router.
func placements(s *service) []placement {
	return append(append(standard(s), ginPlacements(s)...), append(echoPlacements(s), append(chiPlacements(s), gorillaPlacements(s)...)...)...)
}

// resolving says whether Options.ResolvePath is safe at a placement.
type resolving uint8

const (
	evaded   resolving = iota // the rule is evaded
	needless                  // the router itself resolves such a path, or redirects to its resolved form
	safe
)

// placement is a router with the middleware at one place.
type placement struct {
	line string
	name string
	// build gives the whole server's handler.
	build func(limited middlewareFunc) http.Handler
	// resolving says what Options.ResolvePath does here.
	resolving resolving
}

func standard(s *service) []placement {
	serveMux := func(limited middlewareFunc) *http.ServeMux {
		m := http.NewServeMux()
		m.Handle("/admin/", limited(http.HandlerFunc(s.serveAdmin)))
		m.Handle("/", limited(http.HandlerFunc(s.serveOther)))
		return m
	}
	same := func(h http.Handler) http.Handler { return h }
	return []placement{
		{"any router, around the router", "ServeMux", func(l middlewareFunc) http.Handler { return l(serveMux(same)) }, safe},
		{"http.ServeMux, around one handler", "ServeMux", func(l middlewareFunc) http.Handler { return serveMux(l) }, evaded},
	}
}

// inGin is the middleware for gin, as docs/middleware.md has it.
func inGin(limited middlewareFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		passed := false
		next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			passed, c.Request = true, r
			c.Next()
		})
		limited(next).ServeHTTP(c.Writer, c.Request)
		if !passed {
			c.Abort()
		}
	}
}

func ginPlacements(s *service) []placement {
	gin.SetMode(gin.ReleaseMode)
	build := func(configure func(*gin.Engine), use ...gin.HandlerFunc) http.Handler {
		e := gin.New()
		configure(e)
		e.Use(use...)
		e.GET("/admin/*any", gin.WrapF(s.serveAdmin))
		e.NoRoute(func(c *gin.Context) {
			c.Status(http.StatusOK)
			s.serveOther(c.Writer, c.Request)
		})
		return e
	}
	usual := func(*gin.Engine) {}
	raw := func(e *gin.Engine) { e.UseRawPath = true }
	extra := func(e *gin.Engine) { e.RemoveExtraSlash, e.RedirectFixedPath = true, true }
	return []placement{
		{"any router, around the router", "gin", func(l middlewareFunc) http.Handler { return l(build(usual)) }, safe},
		{"gin, Use", "as it comes", func(l middlewareFunc) http.Handler { return build(usual, inGin(l)) }, evaded},
		{"gin, Use", "UseRawPath", func(l middlewareFunc) http.Handler { return build(raw, inGin(l)) }, evaded},
		{"gin, Use", "RemoveExtraSlash", func(l middlewareFunc) http.Handler { return build(extra, inGin(l)) }, needless},
	}
}

func echoPlacements(s *service) []placement {
	build := func(configure func(*echo.Echo)) http.Handler {
		e := echo.New()
		configure(e)
		e.GET("/admin/*", echo.WrapHandler(http.HandlerFunc(s.serveAdmin)))
		e.GET("/*", echo.WrapHandler(http.HandlerFunc(s.serveOther)))
		return e
	}
	use := func(l middlewareFunc) func(*echo.Echo) { return func(e *echo.Echo) { e.Use(echo.WrapMiddleware(l)) } }
	pre := func(l middlewareFunc) func(*echo.Echo) { return func(e *echo.Echo) { e.Pre(echo.WrapMiddleware(l)) } }
	trailing := func(l middlewareFunc) func(*echo.Echo) {
		return func(e *echo.Echo) {
			e.Pre(middleware.RemoveTrailingSlash())
			pre(l)(e)
		}
	}
	usual := func(*echo.Echo) {}
	return []placement{
		{"any router, around the router", "echo", func(l middlewareFunc) http.Handler { return l(build(usual)) }, safe},
		{"echo, Use", "as it comes", func(l middlewareFunc) http.Handler { return build(use(l)) }, evaded},
		{"echo, Pre", "as it comes", func(l middlewareFunc) http.Handler { return build(pre(l)) }, evaded},
		{"echo, Pre", "after RemoveTrailingSlash", func(l middlewareFunc) http.Handler { return build(trailing(l)) }, evaded},
	}
}

func chiPlacements(s *service) []placement {
	build := func(root, route []middlewareFunc) http.Handler {
		r := chi.NewRouter()
		r.Use(root...)
		r.Route("/admin", func(r chi.Router) {
			r.Use(route...)
			r.HandleFunc("/*", s.serveAdmin)
		})
		r.HandleFunc("/*", s.serveOther)
		return r
	}
	cleans := []middlewareFunc{chimiddleware.CleanPath, chimiddleware.StripSlashes}
	return []placement{
		{"any router, around the router", "chi", func(l middlewareFunc) http.Handler { return l(build(nil, nil)) }, safe},
		{"chi, Use at the root", "first", func(l middlewareFunc) http.Handler { return build([]middlewareFunc{l}, nil) }, safe},
		{"chi, Use at the root", "before CleanPath", func(l middlewareFunc) http.Handler { return build(append([]middlewareFunc{l}, cleans...), nil) }, safe},
		{"chi, Use after CleanPath", "CleanPath", func(l middlewareFunc) http.Handler { return build(append(cleans, l), nil) }, evaded},
		{"chi, Route and Use", "as it comes", func(l middlewareFunc) http.Handler { return build(nil, []middlewareFunc{l}) }, evaded},
		{"chi, Route and Use", "CleanPath", func(l middlewareFunc) http.Handler { return build(cleans, []middlewareFunc{l}) }, evaded},
	}
}

func gorillaPlacements(s *service) []placement {
	build := func(configure func(*mux.Router), use ...mux.MiddlewareFunc) http.Handler {
		r := mux.NewRouter()
		configure(r)
		r.Use(use...)
		r.PathPrefix("/admin/").HandlerFunc(s.serveAdmin)
		r.PathPrefix("/").HandlerFunc(s.serveOther)
		return r
	}
	usual := func(*mux.Router) {}
	skip := func(r *mux.Router) { r.SkipClean(true) }
	encoded := func(r *mux.Router) { r.SkipClean(true).UseEncodedPath() }
	return []placement{
		{"any router, around the router", "gorilla", func(l middlewareFunc) http.Handler { return l(build(skip)) }, safe},
		{"gorilla/mux, Use", "as it comes", func(l middlewareFunc) http.Handler { return build(usual, l) }, needless},
		{"gorilla/mux, Use", "SkipClean", func(l middlewareFunc) http.Handler { return build(skip, l) }, evaded},
		{"gorilla/mux, Use", "UseEncodedPath", func(l middlewareFunc) http.Handler { return build(encoded, l) }, evaded},
	}
}
