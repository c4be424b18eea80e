// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
)

// APIVersion and Kind are the values of apiVersion and kind in the configuration file.
const (
	APIVersion = "gateway.atoll.dev/v1alpha1"
	Kind       = "GatewayConfiguration"
)

// Configuration is the content of the file.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	Serving        Serving        `json:"serving"`
	Source         Source         `json:"source"`
	Authentication Authentication `json:"authentication"`
	// Operators may send requests to a peer by its name, at /peers/NAME. Not set: there is no such path.
	Operators *Operators `json:"operators,omitempty"`
	// Fanout runs writes of Accounts and ServiceClusters as operations on all peers. Not set: such a write goes to one region
	// only, as every other write does.
	Fanout *Fanout `json:"fanout,omitempty"`
	// TokenKeysFile has the keys that sign resourceVersions and continue tokens: one key of 32 bytes or more in base64 per
	// line, the one that signs first. All replicas need the same keys. It is read again when it changes. Not set: a random
	// key, so that clients list again after a restart and at another replica.
	TokenKeysFile string `json:"tokenKeysFile,omitempty"`
	// CatalogResources are the types, written RESOURCE.VERSION.GROUP, that the path /apis/across.atoll.dev/v1/catalog
	// stands for; at most 32.
	CatalogResources []string `json:"catalogResources,omitempty"`
	Limits           Limits   `json:"limits,omitempty"`
	Audit            Audit    `json:"audit,omitempty"`
	Log              Log      `json:"log,omitempty"`
	Health           Health   `json:"health,omitempty"`
	Drain            Drain    `json:"drain,omitempty"`
}

// Serving is how the gateway serves clients.
type Serving struct {
	// Address is the address to listen at. Default: ":8443".
	Address string `json:"address,omitempty"`
	// CertificateFile and KeyFile are the certificate to serve with, in PEM. They are read again when they change.
	CertificateFile string `json:"certificateFile"`
	KeyFile         string `json:"keyFile"`
	// AllowedOrigins are the origins, such as https://console.example.com, whose pages may read, write and open streams (CORS).
	// Default: none.
	AllowedOrigins []string `json:"allowedOrigins,omitempty"`
}

// Source is where the peers and their regions come from. Exactly one of File, Directory and Central is set.
type Source struct {
	// File lists peers, their kubeconfigs and regions; see region.FromFile.
	File string `json:"file,omitempty"`
	// Directory has a kubeconfig per file, named like the peer; see region.FromDir. Its peers serve no regions: it is for
	// operators only.
	Directory string `json:"directory,omitempty"`
	// Central is the plane whose Peer objects list the peers.
	Central *Central `json:"central,omitempty"`
	// CacheDirectory keeps the last peers with their credentials, and the routes to regions, for a start while the source
	// cannot be read. It holds secrets. Not set: a start waits until the source can be read.
	CacheDirectory string `json:"cacheDirectory,omitempty"`
	// CacheWait is how long a start waits for the source before it uses the cache. Default: 10s.
	CacheWait *metav1.Duration `json:"cacheWait,omitempty"`
	// ProbeInterval is the time between health probes of a peer that answers, and the longest time until the gateway notices
	// that a peer answers again. Default: 10s.
	ProbeInterval *metav1.Duration `json:"probeInterval,omitempty"`
	// ExecPlugins are the absolute paths of the credential plugins that kubeconfigs may run.
	ExecPlugins []string `json:"execPlugins,omitempty"`
}

// Central is the central plane.
type Central struct {
	// KubeconfigFile is the kubeconfig for the plane. Not set: the plane in whose Pod the gateway runs.
	KubeconfigFile string `json:"kubeconfigFile,omitempty"`
	// Namespace is the namespace of Secrets that Peers name without a namespace. Default: kubecarrier-system.
	Namespace string `json:"namespace,omitempty"`
}

// Authentication is how callers prove who they are. At least one of the ways is set. A caller whom no way knows gets 401.
type Authentication struct {
	ClientCertificates *ClientCertificates `json:"clientCertificates,omitempty"`
	TokenFile          *TokenFile          `json:"tokenFile,omitempty"`
	// JWT are issuers of tokens, in the form of kube-apiserver's AuthenticationConfiguration.
	JWT         []apiserverv1.JWTAuthenticator `json:"jwt,omitempty"`
	TokenReview *TokenReview                   `json:"tokenReview,omitempty"`
	// PassThrough sends each caller's bearer token to the region, which authenticates it. It excludes the other ways for
	// tokens.
	PassThrough *PassThrough `json:"passThrough,omitempty"`
	// Mappings are the identities beginning with "system:" that may act in the regions, by the name that they have there.
	// Without a mapping, such a group is left out, and such a user is refused.
	Mappings []Mapping `json:"mappings,omitempty"`
	// PassUIDs passes the UIDs of users on. The gateway then needs the right to impersonate each UID in each region, and a
	// UID of one cluster means nothing in another one. Default: false.
	PassUIDs bool `json:"passUIDs,omitempty"`
	// ExtraKeys are the keys of a user's extra values that are passed on. Default: none.
	ExtraKeys []string `json:"extraKeys,omitempty"`
}

// ClientCertificates authenticates by client certificates: the common name is the user, the organizations are the groups.
type ClientCertificates struct {
	// CAFile has the authorities that sign clients' certificates, in PEM. It is read again when it changes.
	CAFile string `json:"caFile"`
}

// TokenFile authenticates by a list of tokens.
type TokenFile struct {
	// File has lines of token,name,uid,"group,group", as kube-apiserver's --token-auth-file does. It is read again when it
	// changes.
	File string `json:"file"`
}

// TokenReview authenticates by asking an API server. If that API server does not answer, callers get 503.
type TokenReview struct {
	// KubeconfigFile is the kubeconfig for the API server. Not set: Peer, or the plane in whose Pod the gateway runs.
	KubeconfigFile string `json:"kubeconfigFile,omitempty"`
	// Peer is the name of the peer that is asked.
	Peer string `json:"peer,omitempty"`
	// Audiences are those of which a token needs at least one. Tokens for other services are refused.
	Audiences []string `json:"audiences"`
	// CacheTTL is how long a token that was accepted is not asked about again; at most 10s. Default: 10s.
	CacheTTL *metav1.Duration `json:"cacheTTL,omitempty"`
	// Timeout is how long a review may take. Default: 5s.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// PassThrough has no fields.
type PassThrough struct{}

// Mapping gives one user or one group a name in the regions.
type Mapping struct {
	// User or Group is the name that was authenticated. Exactly one is set.
	User  string `json:"user,omitempty"`
	Group string `json:"group,omitempty"`
	// As is the name in the regions.
	As string `json:"as"`
}

// Operators are the users who may send requests to peers by name.
type Operators struct {
	// Group is the group of the operators, as it was authenticated.
	Group string `json:"group"`
}

// Fanout is how operations on all peers run.
type Fanout struct {
	// LogFile is the write-ahead log of this replica's operations. It must survive restarts. The file is created if it does
	// not exist, and no other process may have it open.
	LogFile string `json:"logFile"`
}

// Limits bound requests, so that no caller or region slows the others. One user gets at most half of a region's places,
// and less while other users wait for them. So a user's requests to one region may wait, and streams get 429, before the
// user reaches RequestsPerUser or StreamsPerUser.
//
// A request above a limit waits, see Waiting and Wait. A stream above a limit gets 429: besides StreamsPerUser, a region
// has at most 1000 streams, and the gateway 4000. A field that is not set has its default.
type Limits struct {
	Requests          int `json:"requests,omitempty"`          // concurrent requests that are not long-running. Default: 400
	RequestsPerRegion int `json:"requestsPerRegion,omitempty"` // of these, to one region. Default: 100
	RequestsPerUser   int `json:"requestsPerUser,omitempty"`   // of these, by one user. Default: 100
	StreamsPerUser    int `json:"streamsPerUser,omitempty"`    // watches, logs and streams of one user. Default: 1000
	// Waiting is the number of requests that wait because one of the limits above is reached; more get 429. At most half of
	// them are of one user, and at most half are to one region. Default: 1000; -1: none may wait.
	Waiting int `json:"waiting,omitempty"`
	// RegionQPS is the number of requests per second to one region; more wait, without regard to Waiting. Default: no limit.
	RegionQPS float32 `json:"regionQPS,omitempty"`
	// SharedWatchBytes is the memory for the objects of shared watches: equal watches of one user, which share one watch of
	// each region. Watches for which there is no memory go to the regions by themselves. Default: 256 MiB.
	SharedWatchBytes int64 `json:"sharedWatchBytes,omitempty"`
	// AnswerTimeout is how long a region may pause while it takes a request or answers it; then the client gets 504.
	// Default: 70s.
	AnswerTimeout *metav1.Duration `json:"answerTimeout,omitempty"`
	// Wait is how long a request waits because a limit is reached; then it gets 429. Default: 10s.
	Wait *metav1.Duration `json:"wait,omitempty"`
}

// Audit is where audit events of requests are written, as JSON lines of audit.k8s.io/v1 Events at the level Metadata.
type Audit struct {
	// File is the path of the file that events are appended to, or "-" for the standard output. Not set: no audit events.
	File string `json:"file,omitempty"`
}

// Log is what the gateway logs, to the standard error.
type Log struct {
	// Level is the verbosity: 0 to 10. Default: 0.
	Level int `json:"level,omitempty"`
	// Requests logs a line for each request, with user, verb, resource, region, code and latency. Default: true.
	Requests *bool `json:"requests,omitempty"`
	// Format is "json" or "text". Default: json.
	Format string `json:"format,omitempty"`
}

// Health is the server of /livez, /readyz and /metrics, without TLS and authentication.
type Health struct {
	// Address is the address to listen at. Default: ":8081".
	Address string `json:"address,omitempty"`
}

// Drain is how the gateway ends.
type Drain struct {
	// Delay is how long it serves on after /readyz has begun to fail, so that load balancers leave it out. Default: 5s.
	Delay *metav1.Duration `json:"delay,omitempty"`
	// Timeout is how long requests may take to end after that. Default: 30s.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}
