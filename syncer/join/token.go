// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
)

// TokenOptions configure NewToken.
type TokenOptions struct {
	// Server is the address of the upstream as the cluster reaches it: https://HOST[:PORT]. Required.
	Server string
	// CA has the authorities of the upstream's certificate, in PEM. Empty: those of the cluster's system.
	CA []byte
	// Namespace is the namespace of the token's ServiceAccount. It must exist. Empty means Namespace.
	Namespace string
	// Lifetime is how long the token can be used: 10 minutes to 24 hours. Zero means one hour.
	Lifetime time.Duration
}

func (o TokenOptions) withDefaults() (TokenOptions, error) {
	if o.Server == "" {
		return o, errors.New("join: TokenOptions.Server is empty: it is the address of the upstream as the cluster reaches it, such as https://upstream.example.com:6443")
	}
	if o.Namespace == "" {
		o.Namespace = Namespace
	}
	if o.Lifetime == 0 {
		o.Lifetime = time.Hour
	}
	if o.Lifetime < 10*time.Minute || o.Lifetime > 24*time.Hour {
		return o, fmt.Errorf("join: TokenOptions.Lifetime is %v: it must be 10m to 24h", o.Lifetime)
	}
	return o, nil
}

// NewToken makes a token with which one cluster can join once as the SyncTarget target, and returns it as a kubeconfig for
// a Renewer. The SyncTarget need not exist yet. It creates a ServiceAccount, which an Approver deletes when the token has
// expired. The errors are those of the API server. It blocks until the API server has answered. The kubeconfig is a secret.
func NewToken(ctx context.Context, upstream region.API, target string, opts TokenOptions) (kubeconfig []byte, err error) {
	if argument.Missing(upstream) {
		return nil, errors.New("join: the upstream is nil: pass the result of region.APIFor")
	}
	if msgs := validation.IsDNS1123Subdomain(target); len(msgs) > 0 {
		return nil, fmt.Errorf("join: %q is not the name of a SyncTarget: %s", target, msgs[0])
	}
	if opts, err = opts.withDefaults(); err != nil {
		return nil, err
	}
	client := upstream.Dynamic().Resource(accounts).Namespace(opts.Namespace)
	account := &unstructured.Unstructured{}
	account.SetAPIVersion("v1")
	account.SetKind("ServiceAccount")
	account.SetName("join-" + rand.String(10))
	account.SetLabels(map[string]string{tokenLabel: "true"})
	account.SetAnnotations(map[string]string{
		targetAnnotation: target, expiresAnnotation: time.Now().Add(opts.Lifetime).UTC().Format(time.RFC3339),
	})
	unstructured.SetNestedField(account.Object, false, "automountServiceAccountToken") //nolint:errcheck // the parent is a map
	if _, err := client.Create(ctx, account, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return nil, fmt.Errorf("join: create the ServiceAccount of a token: %w", err)
	}
	request := &authenticationv1.TokenRequest{
		TypeMeta:   metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
		ObjectMeta: metav1.ObjectMeta{Name: account.GetName(), Namespace: opts.Namespace},
		Spec:       authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(opts.Lifetime.Seconds()))},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
	if err != nil {
		return nil, err
	}
	answer, err := client.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{}, "token")
	if err != nil {
		return nil, fmt.Errorf("join: create a token: %w", err)
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	if token == "" {
		return nil, errors.New("join: create a token: the API server returned none")
	}
	return kubeconfigOf(clientcmdv1.Cluster{Server: opts.Server, CertificateAuthorityData: opts.CA}, clientcmdv1.AuthInfo{Token: token})
}

// kubeconfigOf returns a kubeconfig with one cluster and one user.
func kubeconfigOf(cluster clientcmdv1.Cluster, user clientcmdv1.AuthInfo) ([]byte, error) {
	return yaml.Marshal(clientcmdv1.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "upstream",
		Clusters:  []clientcmdv1.NamedCluster{{Name: "upstream", Cluster: cluster}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: "cluster", AuthInfo: user}},
		Contexts:  []clientcmdv1.NamedContext{{Name: "upstream", Context: clientcmdv1.Context{Cluster: "upstream", AuthInfo: "cluster"}}},
	})
}
