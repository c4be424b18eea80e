// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/atoll-dev/atoll/region"
)

// ErrCredentials says that a peer refuses the router itself and not the caller: it does not accept the credentials that
// the router has for it (401), does not let them impersonate the user, or does not let them read which cluster it is. The
// request had no effect. It never wraps the peer's own answer, which would be mistaken for one to the caller.
var ErrCredentials = errors.New("the peer refuses the router's own credentials")

// Accepted returns nil if resp, the peer's answer to a request that was made with StreamConfig, is one to the identity.
// Otherwise it closes resp.Body and returns a *region.Error with ErrCredentials. It reads at most 64 KiB of an answer with
// 401 or 403, which stays readable.
func (c *Client) Accepted(resp *http.Response) error {
	t := c.transport
	err := accepted(t.id, resp)
	if err == nil {
		return nil
	}
	e := &region.Error{Region: t.key, Op: "stream", Err: err}
	if conn, unknown := t.conn(); unknown == nil {
		e.Peer = conn.Peer()
		conn.Refresh()
	}
	return e
}

// accepted returns ErrCredentials, and closes resp.Body, if resp refuses the router and not id.
func accepted(id Identity, resp *http.Response) error {
	if id.kind != self && id.kind != impersonated {
		return nil // the credentials are the caller's
	}
	var status metav1.Status
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		// A service behind the API server has its own callers and its own 401, which is no Status.
		status = statusIn(resp)
		if isProxied(resp.Request) && status.Reason != metav1.StatusReasonUnauthorized {
			return nil
		}
	case http.StatusForbidden:
		if id.kind == self {
			return nil
		}
		if status = statusIn(resp); !isImpersonation(status) {
			return nil
		}
	default:
		return nil
	}
	_ = resp.Body.Close()
	return fmt.Errorf("%w: %d %s", ErrCredentials, resp.StatusCode, status.Message)
}

// refusedUs is err, or ErrCredentials if err is what the peer answered to the router before the request was sent.
func refusedUs(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return fmt.Errorf("%w: %s", ErrCredentials, err.Error())
	}
	return err
}

// impersonation is how an API server names a verb of impersonation that a user lacks. All others are HTTP's or those of
// Kubernetes' resources, whatever a caller asks for.
var impersonation = regexp.MustCompile(`^User "(?:[^"\\]|\\.)*" cannot impersonate(?:-on)?(?::[a-z:-]+)? (?:resource|path) "`)

// isImpersonation says whether an API server refused to let the router act as somebody. Before the server's own words
// stand the group, resource and name of a request, which its caller chose: they are taken off as the server repeats them.
func isImpersonation(s metav1.Status) bool {
	if s.Reason != metav1.StatusReasonForbidden {
		return false
	}
	own := "forbidden: "
	if d := s.Details; d != nil && d.Kind != "" {
		own = "is forbidden: "
		if d.Name != "" {
			own = strconv.Quote(d.Name) + " " + own
		}
		own = schema.GroupResource{Group: d.Group, Resource: d.Kind}.String() + " " + own
	}
	words, ok := strings.CutPrefix(s.Message, own)
	return ok && impersonation.MatchString(words)
}

// isProxied says whether the answer to req may be that of a pod, service or node behind the API server.
func isProxied(req *http.Request) bool {
	return req == nil || strings.Contains(req.URL.Path+"/", "/proxy/")
}

// maxStatus bounds what is read of an answer. A server's refusals have some hundred bytes.
const maxStatus = 64 << 10

// statusIn reads the Status that resp holds, in any encoding of an API server, and leaves resp.Body as it was. It is zero
// if there is none.
func statusIn(resp *http.Response) metav1.Status {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(data), rest), resp.Body}

	var status metav1.Status
	var unknown runtime.Unknown
	switch {
	case bytes.HasPrefix(data, []byte("k8s\x00")):
		if unknown.Unmarshal(data[4:]) != nil || status.Unmarshal(unknown.Raw) != nil || unknown.Kind != "Status" {
			return metav1.Status{}
		}
		return status
	case bytes.HasPrefix(data, []byte{0xd9, 0xd9, 0xf7}): // RFC 8949, 3.4.6
		err = cbor.Unmarshal(data, &status)
	default:
		err = json.Unmarshal(data, &status)
	}
	if err != nil || status.Kind != "Status" {
		return metav1.Status{}
	}
	return status
}

// failing is a body that cannot be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
