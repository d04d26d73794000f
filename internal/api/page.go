package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/problem"
)

// staticPage serves the built page, or a plain one that says how to build it.
type staticPage struct {
	files fs.FS // nil: not built

	// mu guards made.
	mu   sync.Mutex
	made map[string]*file // by name; the files are embedded and do not change
}

func newStaticPage(files fs.FS) *staticPage {
	return &staticPage{files: files, made: map[string]*file{}}
}

// contentTypes are those of what the build makes. The system's table may be
// missing or say otherwise, and reading it takes longer than a start should.
var contentTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8",
	".json": "application/json", ".map": "application/json", ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2", ".wasm": "application/wasm",
}

// servePage answers what is no endpoint.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case name == "v1" || strings.HasPrefix(name, "v1/"):
		s.writeProblem(w, r, problem.New(problem.NotFound, "there is no %s", clip(r.URL.Path)).WithHint("/v1/openapi.json lists the endpoints"))
		return
	case !isSafe(r.Method):
		w.Header().Set("Allow", "GET, HEAD")
		s.writeProblem(w, r, problem.New(problem.MethodRefused, "%s does not take %s", clip(r.URL.Path), clip(r.Method)))
		return
	case name == "" || name == "index.html":
		s.serveIndex(w, r)
		return
	}
	if s.page.files == nil || !fs.ValidPath(name) {
		s.writeProblem(w, r, problem.New(problem.NotFound, "there is no %s", clip(r.URL.Path)))
		return
	}
	data, err := fs.ReadFile(s.page.files, name)
	if err != nil || path.Base(name)[0] == '.' {
		s.writeProblem(w, r, problem.New(problem.NotFound, "there is no %s", clip(r.URL.Path)))
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType(name))
	if strings.HasPrefix(name, "assets/") {
		// The build puts a hash of the content into these names.
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	f := s.page.file(name, data)
	data, etag := f.plain, f.etag
	if f.gzip != nil {
		h.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r) {
			h.Set("Content-Encoding", "gzip")
			data, etag = f.gzip, f.gzipTag
		}
	}
	h.Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.write(w, r, data)
}

// serveIndex serves the page itself, never from a cache: it names the files of
// one build.
func (s *Server) serveIndex(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	if s.page.files == nil {
		h.Set("Content-Security-Policy", plainPolicy)
		s.write(w, r, []byte(plainPage))
		return
	}
	data, err := fs.ReadFile(s.page.files, "index.html")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = problem.New(problem.NotFound, "the page was built without index.html")
		}
		s.writeProblem(w, r, err)
		return
	}
	h.Set("Content-Security-Policy", s.pagePolicy(r))
	s.write(w, r, data)
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, data []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(data); err != nil {
		s.log.Debug("page not sent", zap.Error(err))
	}
}

// file is one file in the forms it is sent in.
type file struct {
	plain, gzip   []byte // gzip nil: not worth it
	etag, gzipTag string
}

// file makes the forms of a file at its first use: a start must not wait for it.
func (p *staticPage) file(name string, data []byte) *file {
	p.mu.Lock()
	f := p.made[name]
	p.mu.Unlock()
	if f != nil {
		return f
	}
	sum := sha256.Sum256(data)
	tag := hex.EncodeToString(sum[:12])
	f = &file{plain: data, etag: `"` + tag + `"`}
	// Nothing secret is in these files, so compressing them tells nothing.
	if small := compress(data); len(small) < len(data)*9/10 {
		f.gzip, f.gzipTag = small, `"`+tag+`-gz"`
	}
	p.mu.Lock()
	p.made[name] = f
	p.mu.Unlock()
	return f
}

func compress(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails for a bad level only
	_, _ = z.Write(data)                                  // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// acceptsGzip reports whether the client takes gzip, by its name and not q=0.
func acceptsGzip(r *http.Request) bool {
	for _, v := range r.Header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(v, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(item), ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				q = strings.TrimSpace(q)
				return !strings.HasPrefix(q, "q=0") || strings.Trim(q, "q=0.") != ""
			}
		}
	}
	return false
}

func contentType(name string) string {
	if t, ok := contentTypes[path.Ext(name)]; ok {
		return t
	}
	return "application/octet-stream"
}

// plainPage stands in for the page in a binary that was built without Node.
const plainStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em;color-scheme:light dark}code,pre{font:14px/1.5 ui-monospace,monospace}pre{padding:1em;border:1px solid;border-radius:6px;overflow:auto}`

const plainPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ptyd</title>
<style>` + plainStyle + `</style>
</head>
<body>
<h1>ptyd is running</h1>
<p>This binary was built without its page. To get terminals in the browser, build
both with Node installed, from the source directory:</p>
<pre>make build
bin/ptyd serve</pre>
<p>The command line and the API work as they are:</p>
<pre>ptyd run -- bash
ptyd ls</pre>
<p>The API is described by <a href="v1/openapi.json">v1/openapi.json</a>.</p>
</body>
</html>
`

// plainPolicy allows the plain page its one style, by hash.
var plainPolicy = func() string {
	sum := sha256.Sum256([]byte(plainStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()
