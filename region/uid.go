// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// maxAnswer bounds what a probe reads of a peer's answer.
const maxAnswer = 1 << 20

// UID returns the UID of the peer's kube-system namespace, which identifies the cluster: two names for one cluster are
// found by it. It is read once per generation of the credentials and remembered. It needs the right to get that
// namespace. Errors are *Error: ErrUnavailable, or the peer's answer, with ErrIdentityUnknown if that is 403;
// ErrOtherCluster if another cluster answers than at first, or than Peer.UID says. If that is set, no other request is
// sent before it was seen.
func (c *Conn) UID(ctx context.Context) (types.UID, error) {
	g := c.current.Load()
	uid, err := c.identify(ctx, g)
	if next := c.current.Load(); err != nil && next != g {
		uid, err = c.identify(ctx, next) // the credentials were replaced meanwhile
	}
	if err != nil {
		return "", &Error{Peer: c.Peer(), Op: "identify", Err: cause(err)}
	}
	return uid, nil
}

// identify asks the cluster that g reaches who it is, once, and whether it is the peer's.
func (c *Conn) identify(ctx context.Context, g *generation) (types.UID, error) {
	if uid := g.uid.Load(); uid != nil {
		return *uid, nil
	}
	uid, err := c.readUID(ctx, g)
	if err != nil {
		return "", err
	}
	c.uid.CompareAndSwap(nil, &uid)
	if known := *c.uid.Load(); known != uid {
		return "", fmt.Errorf("%w: kube-system has UID %s there, and %s here", ErrOtherCluster, uid, known)
	}
	g.uid.Store(&uid)
	return uid, nil
}

// seen returns nil if g may be sent requests: if nobody said which cluster the peer is, or it was seen to be that one.
func (c *Conn) seen(ctx context.Context, g *generation) error {
	if !c.pinned || g.uid.Load() != nil {
		return nil
	}
	// What is asked here says nothing about the request that waits for it.
	_, err := c.identify(context.WithValue(ctx, attemptKey{}, nil), g)
	if apierrors.IsUnauthorized(err) {
		c.Refresh()
	}
	if err != nil {
		return &Error{Peer: c.Peer(), Op: "identify", Err: cause(err)}
	}
	return nil
}

// readUID asks the cluster that g reaches.
func (c *Conn) readUID(ctx context.Context, g *generation) (types.UID, error) {
	body, err := fetch(ctx, &generationTransport{c, g}, "/api/v1/namespaces/kube-system")
	if apierrors.IsForbidden(err) {
		return "", fmt.Errorf("%w: %w", ErrIdentityUnknown, cause(err))
	}
	if err != nil {
		return "", fmt.Errorf("get namespace kube-system: %w", cause(err))
	}
	var namespace metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &namespace); err != nil {
		return "", fmt.Errorf("get namespace kube-system: the answer is not JSON: %w", err)
	}
	if namespace.UID == "" {
		return "", errors.New("get namespace kube-system: the answer has no UID")
	}
	return namespace.UID, nil
}

// fetch gets path of a peer by rt. An answer other than 200 is an APIStatus error.
func fetch(ctx context.Context, rt http.RoundTripper, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://peer.invalid"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, */*")
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &unavailable{err}
	}
	if resp.StatusCode == http.StatusOK {
		return body, nil
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.Message != "" {
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	return nil, apierrors.NewGenericServerResponse(resp.StatusCode, "get", schema.GroupResource{}, path, "", 0, true)
}
