// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

// answersOf returns the answers of regions a, b and so on. Each is the status as JSON; "" stands for no answer, and "-" for a
// region that is not asked.
func answersOf(t *testing.T, statuses ...string) []reviewed {
	t.Helper()
	var all []reviewed
	for i, text := range statuses {
		a := reviewed{region: region.Key{Provider: "loodse", Name: string(rune('a' + i))}}
		switch text {
		case "":
			a.err = errors.New("the connection broke")
		case "-":
		default:
			require.NoError(t, json.Unmarshal([]byte(text), &a.status))
		}
		all = append(all, a)
	}
	return all
}

func TestReviewsAreMerged(t *testing.T) {
	const yes, no = `{"allowed":true,"reason":"r"}`, `{"allowed":false,"denied":true,"evaluationError":"e"}`
	rule := func(verbs, groups, resources string) string {
		return `{"verbs":` + verbs + `,"apiGroups":` + groups + `,"resources":` + resources + `}`
	}
	rules := func(rules string) string {
		return `{"resourceRules":[` + rules + `],"nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/healthz"]}],"incomplete":false}`
	}
	for name, c := range map[string]struct {
		merge   func([]reviewed) (map[string]any, error)
		answers []string
		want    string // empty: a 503
	}{
		"access in all":     {accessIn, []string{yes, yes}, `{"allowed":true,"reason":"granted by region a.loodse: r; region b.loodse: r"}`},
		"access in one":     {accessIn, []string{yes, no}, `{"allowed":false,"denied":true,"reason":"refused by region b.loodse","evaluationError":"region b.loodse: e"}`},
		"access, one away":  {accessIn, []string{yes, ""}, ""},
		"refused, one away": {accessIn, []string{no, ""}, `{"allowed":false,"denied":true,"reason":"refused by region a.loodse","evaluationError":"region a.loodse: e; region b.loodse: no answer"}`},
		"access to a name":  {accessIn, []string{"-", yes}, `{"allowed":true,"reason":"granted by region b.loodse: r"}`},
		"access to nothing": {accessIn, []string{"-", "-"}, `{"allowed":false,"reason":"no region has it"}`},

		"rules that all have": {rulesIn, []string{
			rules(rule(`["get","list"]`, `[""]`, `["pods"]`)), rules(rule(`["list"]`, `[""]`, `["pods","nodes"]`)),
		}, `{"resourceRules":[{"apiGroups":[""],"resources":["pods"],"verbs":["list"]}],"nonResourceRules":[{"nonResourceURLs":["/healthz"],"verbs":["get"]}],
			"incomplete":true,"evaluationError":"region a.loodse has 1 more resourceRules; region b.loodse has 1 more resourceRules"}`},
		"equal rules": {rulesIn, []string{rules(rule(`["get"]`, `[""]`, `["pods"]`)), rules(rule(`["get"]`, `[""]`, `["pods"]`))},
			`{"resourceRules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}],"nonResourceRules":[{"nonResourceURLs":["/healthz"],"verbs":["get"]}],"incomplete":false}`},
		"rules, one away": {rulesIn, []string{rules(""), ""}, ""},

		"the caller": {subjectIn, []string{
			`{"userInfo":{"username":"alice","uid":"1","groups":["x","y"],"extra":{"k":["v"]}}}`,
			`{"userInfo":{"username":"alice","uid":"2","groups":["y"],"extra":{"k":["v"]}}}`,
		}, `{"userInfo":{"username":"alice","groups":["y"],"extra":{"k":["v"]}}}`},
		"the caller, one away": {subjectIn, []string{`{"userInfo":{"username":"alice"}}`, ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, err := c.merge(answersOf(t, c.answers...))
			if c.want == "" {
				require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
				require.ErrorContains(t, err, "b.loodse")
				return
			}
			require.NoError(t, err)
			text, err := json.Marshal(status)
			require.NoError(t, err)
			require.JSONEq(t, c.want, string(text))
		})
	}
}

// A caller of two names is a Conflict, and the refusal of a region is the answer.
func TestReviewsThatDisagree(t *testing.T) {
	_, err := subjectIn(answersOf(t, `{"userInfo":{"username":"alice"}}`, `{"userInfo":{"username":"bob"}}`))
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "alice in region a.loodse and bob in region b.loodse")

	answers := answersOf(t, `{"allowed":true}`, "")
	answers[1].err = apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectaccessreviews"}, "", errors.New("no"))
	_, err = accessIn(answers)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "region b.loodse")
}

// reviewScene is a scene in which alice may delete nothing in the region us.
func reviewScene(t *testing.T) *scene {
	t.Helper()
	us := regiontest.NewServer(regiontest.Options{Authorize: func(r regiontest.Request) error {
		if r.User.Name == "alice" && r.Verb == "delete" {
			return errors.New("alice deletes nothing here")
		}
		return nil
	}})
	t.Cleanup(us.Close)
	eu := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(eu.Close)
	var peers []region.Peer
	for name, server := range map[string]*regiontest.Server{"eu": eu, "us": us} {
		credentials, err := region.FromConfig(server.Config())
		require.NoError(t, err)
		peers = append(peers, region.Peer{Name: region.PeerName("peer-" + name), Regions: []region.Key{{Provider: "loodse", Name: name}}, Credentials: credentials})
	}
	source, err := region.FromPeers(peers...)
	require.NoError(t, err)
	ring, err := region.NewRing(source, region.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	<-ring.Synced()
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	single, err := proxy.New(routes, authenticate, proxy.Options{})
	require.NoError(t, err)
	s := &scene{routes: routes, single: single}
	s.server = s.replica(t, Options{})
	return s
}

// Reviews over HTTP: the type of each region, the name without its region, and the address of all regions.
func TestReviews(t *testing.T) {
	s := reviewScene(t)
	can := func(verb, name string) (bool, string) {
		t.Helper()
		attributes := map[string]any{"verb": verb, "resource": "configmaps", "namespace": "default", "name": name}
		review, err := s.client(t, "*").Resource(reviews).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": map[string]any{"resourceAttributes": attributes},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		asked, _, _ := unstructured.NestedMap(review.Object, "spec", "resourceAttributes")
		require.Equal(t, attributes, asked, "the answer has the caller's own question")
		allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed")
		reason, _, _ := unstructured.NestedString(review.Object, "status", "reason")
		return allowed, reason
	}
	allowed, reason := can("list", "")
	require.True(t, allowed, reason)
	allowed, reason = can("delete", "")
	require.False(t, allowed)
	require.Equal(t, "refused by region us.loodse: alice deletes nothing here", reason)
	allowed, reason = can("delete", "a@us.loodse")
	require.False(t, allowed, reason)
	allowed, reason = can("delete", "a@eu.loodse")
	require.True(t, allowed, reason)

	code, _, body := s.ask(t, http.MethodGet, "/regions/*/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "alice")
	require.NotEqual(t, http.StatusCreated, code, body)
}
