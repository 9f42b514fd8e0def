package cloud

// App is how a business shows itself in one of the platform's apps. The zero
// App is that of a business which never set it up.
type App struct {
	Code    string `json:"code"`
	Enabled bool   `json:"enabled"`
	Name    string `json:"name"` // empty: the app's own

	LogoURL    string            `json:"logo_url"`
	IconURL    string            `json:"icon_url"`
	Colors     map[string]string `json:"colors"` // name to #RRGGBB
	Radius     *int              `json:"radius"` // pixels
	FontFamily string            `json:"font_family"`
	DarkMode   string            `json:"dark_mode"` // auto, light, dark; empty: auto

	SupportURL string `json:"support_url"`
	PrivacyURL string `json:"privacy_url"`
	TermsURL   string `json:"terms_url"`

	// QuickActions are the shortcuts that are shown, in their order; nil: the
	// usual ones.
	QuickActions []string `json:"quick_actions" null:"true" doc:"Shortcuts in their order; null: the usual ones"`
	// Off are capabilities that the business does not want here.
	Off      []string              `json:"off"`
	Versions map[string]AppVersion `json:"versions"` // by platform: ios, android
}

// AppVersion says which versions of an app there are: MAJOR.MINOR.PATCH, empty
// where nothing is said.
type AppVersion struct {
	Latest      string `json:"latest" max:"64" format:"version"`
	Minimum     string `json:"minimum" max:"64" format:"version"`
	Recommended string `json:"recommended" max:"64" format:"version"`
	StoreURL    string `json:"store_url" max:"512" format:"https"`
}
