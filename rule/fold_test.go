package rule

import "testing"

// Rules match and count paths as one path if the service treats them as one path.
func TestFolds(t *testing.T) {
	for _, c := range []struct {
		folds      Folds
		path, want string
	}{
		{Folds{}, "/V1/Product/;x=1/", "/V1/Product/;x=1/"},
		{Folds{Case: true}, "/V1/PRODUCT", "/v1/product"},
		{Folds{Case: true}, "/v1/Ünder", "/v1/ünder"},
		{Folds{TrailingSlash: true}, "/v1/product/", "/v1/product"},
		{Folds{TrailingSlash: true}, "/", "/"},
		{Folds{TrailingSlash: true}, "*", "*"},
		{Folds{Parameters: true}, "/v1/product;x=1", "/v1/product"},
		{Folds{Parameters: true}, "/v1;a=b/product;c;d/", "/v1/product/"},
		{Folds{Parameters: true}, "/;x", "/"},
		{Folds{Parameters: true}, "/v1/;x/product", "/v1/product"},
		{Folds{Parameters: true}, "/v1/product/;x", "/v1/product/"},
		{Folds{Parameters: true}, "*", "*"},
		{Folds{true, true, true}, "/V1;a/Product/;x=1", "/v1/product"},
		{Folds{true, true, true}, "/V1/Product;x=1/", "/v1/product"},
	} {
		if got := c.folds.Path(c.path); got != c.want {
			t.Errorf("%+v.Path(%s) = %s, want %s", c.folds, c.path, got, c.want)
		}
	}
	all := Folds{true, true, true}
	for pattern, want := range map[string]string{"": "", "/*": "/*", "/A": "/a", "/A/": "/a", "/A;b/*": "/a/*", "/Search/*": "/search/*"} {
		if got := all.Pattern(pattern); got != want {
			t.Errorf("the pattern %q is folded to %q, want %q", pattern, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { all.Path("/v1/product/") }); n != 0 {
		t.Errorf("a path takes %v allocations, want 0", n)
	}
}
