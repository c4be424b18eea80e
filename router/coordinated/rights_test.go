// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

const (
	accountsPath = "/apis/catalog.kubecarrier.io/v1alpha1/accounts"
	clustersPath = "/apis/kubecarrier.io/v1alpha1/namespaces/acme/serviceclusters"
	jsonType     = "application/json"
	mergeType    = "application/merge-patch+json"
	applyType    = "application/apply-patch+yaml"
	newAcme      = `{"apiVersion":"catalog.kubecarrier.io/v1alpha1","kind":"Account","metadata":{"name":"acme"},"spec":{"roles":["Tenant"]}}`
	newOther     = `{"apiVersion":"catalog.kubecarrier.io/v1alpha1","kind":"Account","metadata":{"name":"other"},"spec":{"roles":["Tenant"]}}`
	newDB        = `{"apiVersion":"kubecarrier.io/v1alpha1","kind":"ServiceCluster","metadata":{"name":"db"},"spec":{"kubeconfigSecret":{"name":"db"}}}`
	toProvider   = `{"spec":{"roles":["Provider"]}}`
)

// request is a write of alice.
type request struct{ method, path, media, body string }

// writes are requests of each verb for an Account that exists in every region, by the verb that alice needs.
func writes(where string) map[string]request {
	at := "/regions/" + where + accountsPath
	return map[string]request{
		"create":          {http.MethodPost, at, jsonType, newOther},
		"update":          {http.MethodPut, at + "/acme", jsonType, ""},
		"patch":           {http.MethodPatch, at + "/acme", mergeType, toProvider},
		"patch to apply":  {http.MethodPatch, at + "/acme?fieldManager=x&force=true", applyType, `{"apiVersion":"catalog.kubecarrier.io/v1alpha1","kind":"Account","metadata":{"name":"acme"},"spec":{"roles":["Provider"]}}`},
		"patch to create": {http.MethodPatch, at + "/other?fieldManager=x", applyType, newOther},
		"delete":          {http.MethodDelete, at + "/acme", "", ""},
	}
}

// body returns the body of the request; that of an update is the present object with other roles.
func (s *scene) body(t *testing.T, r request, where string) string {
	t.Helper()
	if r.method != http.MethodPut {
		return r.body
	}
	name := "acme"
	if where == "*" {
		name = "acme@us.loodse"
	}
	o, err := s.in(t, where, accounts).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	o.Object["spec"].(map[string]any)["roles"] = []any{"Provider"}
	data, err := o.MarshalJSON()
	require.NoError(t, err)
	return string(data)
}

// The caller must have the right in every region. If it lacks it in one of them, or if one of them does not answer,
// nothing is written, and the answer names the region.
func TestRightsEverywhere(t *testing.T) {
	for verb := range writes("*") {
		for _, where := range []string{"*", "eu.loodse", "us.loodse"} {
			t.Run(verb+" "+where, func(t *testing.T) {
				s := newScene(t, fanout.Options{})
				s.acme(t)
				r := writes(where)[verb]
				body := s.body(t, r, where)
				for peer, name := range map[region.PeerName]string{"peer-a": "eu.loodse", "peer-b": "us.loodse"} {
					s.forbid(func(at region.PeerName, r regiontest.Request) bool {
						return at == peer && r.Resource == "accounts" && r.Verb != "get"
					})
					s.reset(t)
					code, answer := s.send(t, r.method, r.path, r.media, body)
					require.Equal(t, http.StatusForbidden, code, answer)
					require.Contains(t, answer, name)
					require.NotContains(t, answer, "peer-")
					s.unwritten(t)

					s.forbid(func(region.PeerName, regiontest.Request) bool { return false })
					s.ring.Partition(peer, true)
					code, answer = s.send(t, r.method, r.path, r.media, body)
					require.Equal(t, http.StatusServiceUnavailable, code, answer)
					require.Contains(t, answer, name)
					require.NotContains(t, answer, "peer-")
					s.ring.Partition(peer, false)
					s.unwritten(t)
				}
				code, answer := s.send(t, r.method, r.path, r.media, body)
				require.Less(t, code, http.StatusBadRequest, answer)
			})
		}
	}
}

// For an object that exists once, only its own region decides about the caller.
func TestRightsOnce(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	s.forbid(func(at region.PeerName, r regiontest.Request) bool {
		return at != "peer-b" && r.Resource == "serviceclusters"
	})
	s.reset(t)
	code, answer := s.send(t, http.MethodPost, "/regions/eu.loodse"+clustersPath, jsonType, newDB)
	require.Equal(t, http.StatusForbidden, code, answer)
	require.Contains(t, answer, "region eu.loodse")
	s.unwritten(t)
	for _, r := range []request{
		{http.MethodPost, "/regions/us.loodse" + clustersPath, jsonType, newDB},
		{http.MethodPatch, "/regions/*" + clustersPath + "/db", mergeType, `{"metadata":{"labels":{"a":"b"}}}`},
		{http.MethodDelete, "/regions/*" + clustersPath + "/db", "", ""},
	} {
		code, answer = s.send(t, r.method, r.path, r.media, r.body)
		require.Less(t, code, http.StatusBadRequest, answer)
	}
	code, answer = s.send(t, http.MethodPost, "/regions/us.loodse"+clustersPath, jsonType, newDB)
	require.Less(t, code, http.StatusBadRequest, answer)
	require.NoError(t, s.coordinator.Wait(t.Context()))
	s.forbid(func(_ region.PeerName, r regiontest.Request) bool { return r.Resource == "serviceclusters" })
	s.reset(t)
	for _, r := range []request{
		{http.MethodPatch, "/regions/*" + clustersPath + "/db", mergeType, `{"metadata":{"labels":{"a":"b"}}}`},
		{http.MethodDelete, "/regions/*" + clustersPath + "/db", "", ""},
		{http.MethodDelete, "/regions/us.loodse" + clustersPath + "/db", "", ""},
		{http.MethodDelete, "/regions/*" + clustersPath + "/absent", "", ""},
	} {
		code, answer = s.send(t, r.method, r.path, r.media, r.body)
		require.Equal(t, http.StatusForbidden, code, answer)
	}
	s.unwritten(t)
}

// A caller who may not read an object gets the result of the dry run.
func TestAnswerWithoutTheRightToRead(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.forbid(func(_ region.PeerName, r regiontest.Request) bool { return r.Verb == "get" })
	made, err := s.in(t, "*", accounts).Create(t.Context(), newAccount("acme"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "acme@ap.loodse", made.GetName())
	require.Empty(t, made.GetUID())
	require.Empty(t, made.GetResourceVersion())
	require.Equal(t, []string{"Tenant"}, roles(made))
}

// A region that does not report the caller's rights cannot be asked.
func TestReviewsThatAreRefused(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	s.forbid(func(at region.PeerName, r regiontest.Request) bool {
		return at == "peer-b" && r.Resource == "selfsubjectaccessreviews"
	})
	s.reset(t)
	code, answer := s.send(t, http.MethodDelete, "/regions/eu.loodse"+accountsPath+"/acme", "", "")
	require.Equal(t, http.StatusServiceUnavailable, code, answer)
	require.Contains(t, answer, "region us.loodse")
	s.unwritten(t)
}
