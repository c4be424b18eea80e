// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
)

var signingRequests = gvr("certificates.k8s.io", "v1", "certificatesigningrequests")

// requestOf returns a request for the certificate of a node.
func requestOf(t *testing.T, node string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	subject := pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// problemOf waits until the syncer reports an object, and returns the Problem.
func (w *world) problemOf(t *testing.T, of schema.GroupVersionResource, name string) syncer.Problem {
	t.Helper()
	var found syncer.Problem
	planetest.Eventually(t, long, name+" is reported", func(context.Context) error {
		for _, s := range w.Status().Types {
			if at := slices.IndexFunc(s.Problems, func(p syncer.Problem) bool { return p.Object.Name == name }); s.Resource == of && at >= 0 {
				found = s.Problems[at]
				return nil
			}
		}
		return errors.New("it is not reported")
	})
	return found
}

// A tenant's CertificateSigningRequest is not copied downstream, where the cluster would approve
// and sign the syncer's request for a node's certificate. With the permit it is copied, which shows
// that only the missing permit prevented the copy.
func TestCertificateSigningRequests(t *testing.T) {
	w := newWorld(t, syncer.Options{Conditions: true})
	up, down := w.up.global(), w.down.global()
	name := "node-" + w.up.namespace
	planetest.Apply(t, w.up.plane, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %[1]s}, rules: [{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests], verbs: [create]}]}\n---\n"+
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %[1]s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}, subjects: [{kind: User, name: %[1]s, apiGroup: rbac.authorization.k8s.io}]}", name))
	kubeconfig, err := w.up.plane.KubeconfigFor(name)
	require.NoError(t, err)
	config, err := plane.ConfigOf(kubeconfig)
	require.NoError(t, err)
	tenant := *up
	tenant.api, err = region.APIFor(config)
	require.NoError(t, err)
	planetest.Eventually(t, long, "the tenant may ask", func(ctx context.Context) error {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "spec": map[string]any{
			"request": requestOf(t, name), "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": []any{"digital signature", "client auth"},
		}}}
		obj.SetName(name)
		obj.SetLabels(map[string]string{"workloads.kcp.io/cluster": w.up.target})
		return tenant.make(ctx, signingRequests, obj)
	})
	w.up.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")

	p := w.problemOf(t, signingRequests, name)
	require.Equal(t, syncer.ReasonNotPermitted, p.Reason)
	require.Contains(t, p.Message, "needs the permit CertificateSigningRequests")
	w.down.has(configMaps, "a", nil)
	up.has(signingRequests, name, map[string]string{"spec.username": name, "status.certificate": "", "metadata.finalizers": "", "metadata.annotations": "*"})
	w.rest(t, nil)
	down.lacks(signingRequests, name)

	w.stop()
	w.start(t, syncer.Options{Permit: []syncer.Power{syncer.PermitCertificateSigningRequests}})
	down.has(signingRequests, name, map[string]string{"spec.username": "admin", "spec.groups": "[system:masters system:authenticated]", "status.certificate": "*"})
	// The certificate is not copied upstream: an API server rejects an approval in a status update.
	p = w.problemOf(t, signingRequests, name)
	require.Equal(t, syncer.ReasonStatusRefused, p.Reason)
	up.has(signingRequests, name, map[string]string{"spec.username": name, "status.certificate": ""})
}
