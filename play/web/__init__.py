"""The web page: plain HTML, CSS and JavaScript modules, served as they lie here."""
