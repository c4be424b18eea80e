// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
)

// edited returns a manifest with other metadata.
func edited(manifest, metadata string) string {
	return strings.Replace(manifest, `"metadata":{`, `"metadata":{`+metadata+`,`, 1)
}

// A caller cannot write the fields of the coordinator, nor fields that the peers do not share together with content.
// Such a request is refused, with the name of the field, before anything is written.
func TestFieldsThatAreRefused(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	_, err := s.in(t, "us.loodse", clusters).Create(t.Context(), newCluster("db"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.coordinator.Wait(t.Context()))
	owner := `"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"x","uid":"y"}]`
	claim := `"fanout":{"claim":{"operation":"o","peer":"p","role":"Primary","target":"p","digest":"d","start":"2026-01-01T00:00:00.000000Z"},"stage":"Reserved"},`
	accountAt, clusterAt := "/regions/eu.loodse"+accountsPath, "/regions/us.loodse"+clustersPath
	claimed := func(manifest string) string { return strings.Replace(manifest, `"spec":{`, `"spec":{`+claim, 1) }
	requests := map[string]struct {
		request
		field string
	}{
		"create a claim":                 {request{http.MethodPost, accountAt, jsonType, claimed(newOther)}, "spec.fanout"},
		"create a claim of a cluster":    {request{http.MethodPost, clusterAt, jsonType, claimed(strings.Replace(newDB, `"db"`, `"x"`, 1))}, "spec.fanout"},
		"apply a claim":                  {request{http.MethodPatch, accountAt + "/other?fieldManager=x", applyType, claimed(newOther)}, "spec.fanout"},
		"create a release":               {request{http.MethodPost, accountAt, jsonType, edited(newOther, `"annotations":{"fanout.atoll.dev/release-removal":"x"}`)}, "fanout.atoll.dev/release-removal"},
		"create a finalizer":             {request{http.MethodPost, accountAt, jsonType, edited(newOther, `"finalizers":["example.com/x"]`)}, "metadata.finalizers"},
		"create the finalizer":           {request{http.MethodPost, clusterAt, jsonType, edited(newDB, `"finalizers":["fanout.atoll.dev/primary"]`)}, "metadata.finalizers"},
		"create an owner":                {request{http.MethodPost, accountAt, jsonType, edited(newOther, owner)}, "metadata.ownerReferences"},
		"create a generated name":        {request{http.MethodPost, accountAt, jsonType, strings.Replace(newOther, `"name":"other"`, `"generateName":"x-"`, 1)}, "metadata.generateName"},
		"release a removal":              {request{http.MethodPatch, accountAt + "/acme", mergeType, `{"metadata":{"annotations":{"fanout.atoll.dev/release-removal":"x"}}}`}, "fanout.atoll.dev/release-removal"},
		"release a removal at a replica": {request{http.MethodPatch, "/regions/us.loodse" + accountsPath + "/acme", mergeType, `{"metadata":{"annotations":{"fanout.atoll.dev/release-removal":"x"}}}`}, "fanout.atoll.dev/release-removal"},
		"release in all regions":         {request{http.MethodPatch, "/regions/*" + accountsPath + "/acme", mergeType, `{"metadata":{"annotations":{"fanout.atoll.dev/release-removal":"x"}}}`}, "fanout.atoll.dev/release-removal"},
		"another stage":                  {request{http.MethodPatch, clusterAt + "/db", mergeType, `{"spec":{"fanout":{"stage":"Removing","removal":{"operation":"x","start":"2026-01-01T00:00:00.000000Z"}}}}`}, "spec.fanout"},
		"another heartbeat":              {request{http.MethodPatch, clusterAt + "/db", "application/json-patch+json", `[{"op":"add","path":"/spec/fanout/heartbeat","value":77}]`}, "spec.fanout"},
		"another history":                {request{http.MethodPatch, accountAt + "/acme", mergeType, `{"spec":{"fanout":{"history":[]}}}`}, "spec.fanout"},
		"another claim":                  {request{http.MethodPatch, clusterAt + "/db", mergeType, `{"spec":{"fanout":{"claim":{"operation":"x"}}}}`}, "held for region us.loodse"},
		"no finalizer":                   {request{http.MethodPatch, clusterAt + "/db", mergeType, `{"metadata":{"finalizers":null}}`}, "metadata.finalizers[fanout.atoll.dev/primary]"},
		"finalizers and content":         {request{http.MethodPatch, accountAt + "/acme", mergeType, `{"metadata":{"finalizers":["fanout.atoll.dev/primary","example.com/x"]},"spec":{"roles":["Provider"]}}`}, "metadata.finalizers"},
		"owners and content":             {request{http.MethodPatch, accountAt + "/acme", mergeType, `{"metadata":{` + owner + `},"spec":{"roles":["Provider"]}}`}, "metadata.ownerReferences"},
		"orphans":                        {request{http.MethodDelete, accountAt + "/acme?propagationPolicy=Orphan", "", ""}, "propagationPolicy"},
		"foreground":                     {request{http.MethodDelete, accountAt + "/acme", jsonType, `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground"}`}, "propagationPolicy"},
		"old orphans":                    {request{http.MethodDelete, accountAt + "/acme?orphanDependents=true", "", ""}, "orphanDependents"},
		"all of them":                    {request{http.MethodDelete, accountAt, "", ""}, "deletecollection"},
		"all of them in all regions":     {request{http.MethodDelete, "/regions/*" + accountsPath, "", ""}, "deletecollection"},
		"a named create":                 {request{http.MethodPost, accountAt + "/acme", jsonType, newAcme}, "create of a named object"},
		"another version":                {request{http.MethodPut, "/regions/eu.loodse/apis/catalog.kubecarrier.io/v1/accounts/acme", jsonType, newAcme}, "v1alpha1"},
		"a dry run of another form":      {request{http.MethodPost, accountAt + "?dryRun=Some", jsonType, newOther}, "dryRun"},
		"a timeout that is no duration":  {request{http.MethodPost, accountAt + "?timeout=x", jsonType, newOther}, "timeout"},
		"no region":                      {request{http.MethodDelete, "/regions/mars.loodse" + accountsPath + "/acme", "", ""}, "mars.loodse"},
	}
	s.reset(t)
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			code, answer := s.send(t, r.method, r.path, r.media, r.body)
			require.GreaterOrEqual(t, code, http.StatusBadRequest, answer)
			require.Less(t, code, http.StatusInternalServerError, answer)
			require.Contains(t, answer, r.field)
			require.NotContains(t, answer, "peer-")
			s.unwritten(t)
		})
	}
}

// Finalizers and owners are of the object of one region, and are changed there alone.
func TestFieldsOfOneRegion(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	for _, where := range []string{"eu.loodse", "us.loodse"} {
		client := s.in(t, where, accounts)
		o, err := client.Get(t.Context(), "acme", metav1.GetOptions{})
		require.NoError(t, err)
		before := o.GetFinalizers()
		o.SetFinalizers(append(before, "example.com/x"))
		o, err = client.Update(t.Context(), o, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Contains(t, o.GetFinalizers(), "example.com/x")
		require.NotContains(t, s.get(t, "peer-c", accounts, "acme").GetFinalizers(), "example.com/x")
		o.SetFinalizers(before)
		_, err = client.Update(t.Context(), o, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	status := []byte(`{"status":{"observedGeneration":77}}`)
	_, err := s.in(t, "us.loodse", accounts).Patch(t.Context(), "acme", types.MergePatchType, status, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	for peer := range peers {
		got, _, _ := unstructured.NestedInt64(s.get(t, peer, accounts, "acme").Object, "status", "observedGeneration")
		require.Equal(t, peer == "peer-b", got == 77, peer)
	}
}

// A dry run gets the answer of its region, and the refusals of a write. It writes nothing.
func TestDryRuns(t *testing.T) {
	for _, where := range []string{"*", "eu.loodse", "us.loodse"} {
		s := newScene(t, fanout.Options{})
		s.acme(t)
		_, err := s.in(t, "us.loodse", clusters).Create(t.Context(), newCluster("db"), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, s.coordinator.Wait(t.Context()))
		s.reset(t)
		for verb, r := range writes(where) {
			sep := "?"
			if strings.Contains(r.path, "?") {
				sep = "&"
			}
			code, answer := s.send(t, r.method, r.path+sep+"dryRun=All", r.media, s.body(t, r, where))
			require.Less(t, code, http.StatusBadRequest, "%s %s: %s", where, verb, answer)
			if r.method == http.MethodPut || r.method == http.MethodPatch && !strings.Contains(r.path, "other") {
				require.Contains(t, answer, "Provider", verb)
			}
		}
		code, answer := s.send(t, http.MethodPost, "/regions/"+where+accountsPath+"?dryRun=All", jsonType, newAcme)
		require.Equal(t, map[string]int{"*": http.StatusConflict, "eu.loodse": http.StatusConflict, "us.loodse": http.StatusConflict}[where], code, answer)
		for _, r := range []request{
			{http.MethodPatch, "/regions/*" + clustersPath + "/db?dryRun=All", mergeType, `{"metadata":{"labels":{"a":"b"}}}`},
			{http.MethodDelete, "/regions/*" + clustersPath + "/db?dryRun=All", "", ""},
		} {
			code, answer = s.send(t, r.method, r.path, r.media, r.body)
			require.Equal(t, http.StatusOK, code, answer)
		}
		s.unwritten(t)
	}
}
