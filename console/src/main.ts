import '@fontsource-variable/inter/wght.css'
import '@fontsource-variable/jetbrains-mono/wght.css'
import './styles/tokens.css'
import './styles/base.css'

import { mount } from 'svelte'

import App from './App.svelte'
import { router } from './router.svelte'
import { session } from './session.svelte'
import { text } from './text/words.svelte'
import { theme } from './theme.svelte'
import { clock } from './time/time.svelte'

theme.start()
text.use(text.language)
clock.start()
router.start()
void session.find()

mount(App, { target: document.getElementById('app')! })
