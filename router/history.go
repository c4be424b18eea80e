// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/requestinfo"
	"github.com/atoll-dev/atoll/region"
)

// maxPaths is the maximum number of paths in history.lists. Once the map is full, it is cleared. A client that then
// continues from a resourceVersion may get 410 and have to list once more.
const maxPaths = 4096

// history records the connection over which each collection was last listed: a resourceVersion of one cluster is
// meaningless to another.
type history struct {
	mu    sync.Mutex
	first *region.Conn // the connection of the first request
	moved bool         // a request has used another connection than first: a resourceVersion of unknown origin is now foreign
	lists map[string]*region.Conn
	// ended counts, by path, the watches that a move ended and that did not start again since. The users of these
	// watches have resourceVersions of the old peer. The map is never cleared, because such a version could then reach
	// the new peer. A move adds at most the number of open watches.
	ended map[string]int
}

func newHistory() *history {
	return &history{lists: make(map[string]*region.Conn), ended: make(map[string]int)}
}

// foreign reports whether req continues from a resourceVersion of a connection other than conn. Every call also
// records whether the Client has used more than one connection.
func (h *history) foreign(conn *region.Conn, req *http.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first == nil {
		h.first = conn
	}
	h.moved = h.moved || conn != h.first
	if req.Method != http.MethodGet {
		return false
	}
	query := req.URL.Query()
	if v := query.Get("resourceVersion"); (v == "" || v == "0") && query.Get("continue") == "" {
		return false
	}
	path := req.URL.Path
	if !isCollection(path) && !isWatch(req) {
		return false // a read of a single object continues neither a list nor a watch
	}
	listed, ok := h.lists[path]
	foreign := ok && listed != conn || !ok && h.moved
	if n := h.ended[path]; n > 0 && isWatch(req) {
		// Another user of this Client may have listed at the new peer. That does not make this watch's version
		// valid there.
		foreign = true
		if h.ended[path] = n - 1; n == 1 {
			delete(h.ended, path)
		}
	}
	return foreign
}

// end records that the watch req ends because the region moved.
func (h *history) end(req *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended[req.URL.Path]++
}

// note records conn as the origin of a collection's resourceVersions. It does so if resp is the successful answer to a
// list or a watch of the collection.
func (h *history) note(conn *region.Conn, req *http.Request, resp *http.Response) {
	if req.Method != http.MethodGet || resp.StatusCode != http.StatusOK || !isCollection(req.URL.Path) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.lists) >= maxPaths {
		clear(h.lists)
	}
	h.lists[req.URL.Path] = conn
}

// isCollection reports whether path may be the path of a collection: .../VERSION/RESOURCE or
// .../VERSION/namespaces/NS/RESOURCE.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return false
	}
	return len(parts) == 1 || len(parts) == 3 && parts[0] == "namespaces"
}

// isWatch reports whether an API server treats req as a watch.
func isWatch(req *http.Request) bool {
	info, _ := requestinfo.Of(req) // the Verb is valid even with an error: it is the server's classification
	return info.Verb == "watch"
}

// gone returns the 410 that an API server answers for an expired resourceVersion.
func gone(req *http.Request, k region.Key) *http.Response {
	body, _ := json.Marshal(metav1.Status{ // cannot fail: the Status is plain data
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
		Message: fmt.Sprintf("region %s moved to another peer; the resourceVersion is of the former one", k),
	})
	return &http.Response{
		Status: "410 Gone", StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
