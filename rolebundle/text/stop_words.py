"""Function words per language: removed from queries, and used to detect the language of a text.

The language of a text is detected by lists of the most frequent words, so that what is indexed does
not depend on how complete a list of function words is. A word that several languages share is in
the list of each of them, so that it does not favour one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from rolebundle.text.spellings import folded

ENGLISH_STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each few for from further get gets
    getting had has have having he her here hers him his how i if in into is it its itself just
    let like make makes making many may me might more most much must my need needed needs no nor
    not now of off on once one only or other our ours out over own per please put said same say
    says shall she should so some such tell than that the their theirs them then there these
    they this those through to too under until up upon us use used uses using very want wants was
    way ways we were what when where whether which while who whom whose why will with within
    without work works would yes yet you your yours
    """.split()
)

NEGATIONS = frozenset("no not never none nobody nothing neither nor cannot without nowhere".split())
"""English words that deny; besides the contractions that end with "n't"."""

NUMBER_WORDS: dict[str, float] = {
    word: float(number)
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty".split(),
        start=1,
    )
}
NUMBER_WORDS |= {
    word: 10.0 * number
    for number, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), start=3)
}
"""English numbers as words, and their values."""


_WORDS = {
    "da": "og det er ikke som på til af den med har de en at vi kan jeg et hvad hvor hvordan der"
    " blev ved eller fra efter",
    "de": "und der die das ist nicht ein eine einer eines einem einen mit auf für von dem den des"
    " im zu sich wird werden auch als wie was wer wo wann welche welcher welches oder sind"
    " bei aus durch nach wenn kann können über zum zur wurde hat haben sie ich wir ihr es er"
    " man warum wieviel viele",
    "es": "el la los las de del que y en un una es por con para se no su al lo como más qué cuál"
    " cuándo dónde quién cómo cuántos cuántas son está fue ha o sobre entre este esta si"
    " cuando también pero sin",
    "fr": "le la les des du de et en un une est que qui dans pour pas sur au aux avec ce cette ne"
    " se il elle sont par plus ou où quel quelle quels quelles comment quand pourquoi"
    " combien a été leur nous vous si l d",
    "it": "il lo la gli le di del della dei delle che e è un una in per con non si da al alla nel"
    " nella come più sono quale quali quando dove chi perché quanti anche o ma questo questa"
    " i",
    "pt": "o a os as do da dos das que e em um uma é para com não se por no na nos nas ao mais"
    " como são qual quais quando onde quem quantos foi ou seu sua também mas está",
    "nl": "de het een en van is niet dat op te met voor zijn er aan door ook wordt worden bij of"
    " wat hoe waar wie welke wanneer waarom als naar uit over kan werd hebben heeft deze die",
    "sv": "och att det som en på är av för med den till inte om har de ett vad hur var vem vilken"
    " vilka när varför kan från vid eller jag vi så",
    "no": "og det er ikke som på til av den med har de en et for hva hvor hvordan hvem når"
    " hvilken kan fra ved eller jeg vi blir ble etter",
    "fi": "ja on ei se että oli hän mutta kuin ovat mitä missä milloin kuka miten mikä tai myös"
    " joka jotka voi sen tämä niin kun jos ole",
    "hu": "a az és hogy nem is egy van volt meg ez azt mi hol mikor ki hogyan melyik vagy de csak"
    " már mint el ha kell lehet",
    "ro": "și în la cu de pe nu este un o care din ce să se mai pentru sunt al ale cum când unde"
    " cine cât câte sau fost prin",
    "ca": "el la els les de del dels que i en un una és per amb no es al com més què quan on qui"
    " són va aquest aquesta o però també",
    "cs": "a je v se na že s z do to o i jak co kde kdy kdo jaký která které nebo by není jsou"
    " pro od po při jako byl bylo",
    "pl": "i w na z do nie się jest że to o jak co gdzie kiedy kto jaki która które lub dla od po"
    " przez był było są oraz przy ile",
    "tr": "ve bir bu için ile olan da de ne nasıl nerede kim hangi kaç olarak daha gibi çok en ya"
    " veya değil ise kadar sonra var mı mi",
    "id": "dan yang di dari untuk dengan ini itu dalam pada adalah tidak ke akan oleh apa siapa"
    " bagaimana kapan atau juga bisa dapat sebagai ada berapa mana",
    "vi": "và của là có được cho không các trong một những với này để khi người từ đã gì nào như"
    " thế ở đâu ai bao nhiêu hoặc bạn trên theo",
    "lt": "ir yra kad su iš į tai ne bet kaip kas kur kada arba nuo už jis ji buvo apie taip pat",
    "et": "ja on ei et see oli mis kus millal kes kuidas või ka aga kui seda nii oma mida",
}
FREQUENT_WORDS = {code: frozenset(words.split()) for code, words in _WORDS.items()}
"""Language code (ISO 639-1) → the words by which running text is recognized."""

# From the grammars: pronouns, possessives, auxiliary and modal verbs in their forms, question
# words, prepositions, conjunctions, words of degree and of courtesy. "mein/e/em" is mein, meine
# and meinem.
_FURTHER_WORDS: dict[str, str] = {
    "da": "du han hun i mig dig sig ham hende os jer dem min mit mine din dit dine sin sit sine"
    " hans hendes vores jeres deres dette denne disse sådan være var været bliver blive blevet"
    " have haft havde skal skulle kunne vil ville må måtte bør gør gøre gjorde får få fik hvem"
    " hvilken hvilket hvilke hvornår hvorfor hvorhen hvis hvorvidt mange meget mere mest ingen"
    " intet nogen noget nogle alle alt anden andet andre hver hvert selv også kun men om op ned"
    " ud ind over under mellem mod uden hos ad før siden nu her så da når end ja nej tak"
    " venligst hr fru",
    "de": "mein/e/em/en/er/es dein/e/em/en/er/es sein/e/em/en/er/es ihr/e/em/en/er/es"
    " unser/e/em/en/er/es euer eure/m/n/r/s kein/e/em/en/er/es dies/e/em/en/er/es"
    " jed/e/em/en/er/es jene/m/n/r/s manche/m/n/r/s solch/e/em/en/er/es welch/e/em/en/er/es"
    " all/e/em/en/er/es andere/m/n/r/s einige/m/n/r/s viel/e/em/en/er/es mehrere/m/n/r"
    " beide/m/n/r/s wenig/e/em/en/er/es derselbe dieselbe/n dasselbe mich mir dich dir ihm ihn"
    " ihnen uns euch du deren dessen denen jemand/em/en niemand/em/en etwas nichts selbst selber"
    " wen wem wessen woher wohin womit wofür wovon woran worauf worin worum wozu wodurch wobei"
    " wonach weshalb wieso weswegen wieviel/e ob bin bist seid war/en/st/t wäre/n/st gewesen"
    " hast habt hatte/n/st/t hätte/n/st/t gehabt werde wirst werdet wurde/n/st würde/n/st/t"
    " worden geworden muss muß musst müssen müsst musste/n/st müsste/n/st darf/st dürfen dürft"
    " durfte/n dürfte/n kannst könnt konnte/n/st könnte/n/st/t soll/en/st/t sollte/n/st/t"
    " will/st wollen wollt wollte/n/st mag/st mögen mögt möchte/n/st/t mochte/n lässt lassen"
    " lasse gib/t geben gebe gab/en gäbe heißt heißen hieß tun tut tue tat mache/n/st machst"
    " macht brauche/n/st braucht bekomme/n bekommt ab an bis gegen gegenüber hinter in neben"
    " ohne seit statt trotz unter vor während wegen zwischen innerhalb außerhalb außer gemäß"
    " laut am ans beim fürs ins unterm vom vorm ums aber denn doch sondern sowie sowohl weder"
    " noch entweder falls weil damit dass daß obwohl bevor nachdem sobald solange indem sodass"
    " daher deshalb deswegen dann da dabei dadurch dafür dagegen daran darauf daraus darin"
    " darüber darum davon dazu danach so sehr mehr meist nur nun jetzt hier dort schon immer"
    " wieder eben etwa ja nein bitte danke herr/n frau/en hallo raus rein heraus hinaus hin her"
    " weg eigentlich mal gilt gelten",
    "es": "yo tú usted ustedes él ella ellos ellas nosotros nosotras vosotros vosotras me te nos"
    " os le les mí ti mi/s tu/s su/s nuestr/o/a/os/as vuestr/o/a/os/as mí/o/a/os/as"
    " tuy/o/a/os/as suy/o/a/os/as est/a/o/os/as ese esa eso esos esas aquel aquella aquello"
    " aquellos aquellas unos unas algún algun/o/a/os/as ningún ningun/o/a tod/o/a/os/as"
    " much/o/a/os/as poc/o/a/os/as otr/o/a/os/as mism/o/a/os/as cada tal tales tant/o/a/os/as"
    " quien quienes quiénes cual cuales cuáles cuánt/o/a/os/as donde adónde nada nadie algo"
    " alguien soy eres somos sois era/n/s éramos fui fueron fueran sea/n sido ser siendo estoy"
    " está/s/n estamos estar estaba/n estado he has hemos han había/n haya/n haber hay hubo"
    " tengo tiene/n/s tenemos tener tenía/n puedo puede/n/s podemos poder podía/n pudo podría/n"
    " debo debe/n/s debemos deber debía/n debería/n quiero quiere/n queremos querer quería"
    " quisiera hago hace/n hacer hizo necesito necesita/n dice/n decir va voy van vamos ir a"
    " ante bajo contra desde durante hacia hasta mediante según tras ni sino aunque porque pues"
    " mientras así ya aún aquí ahí allí muy tan menos sólo solo siempre nunca sí antes después"
    " ahora entonces favor gracias señor/a/es sr sra don doña hola",
    "fr": "lors je tu ils elles on me te moi toi lui eux soi y mon ma mes ton ta tes son sa ses"
    " notre nos votre vos leurs mien/s mienne/s tien/s sien/s sienne/s cet ces ça cela ceci"
    " celui celle/s ceux tout/e/es tous aucun/e quelque/s quelqu quelqu'un chaque plusieurs"
    " autre/s même/s tel/s telle/s rien personne quoi dont lequel laquelle lesquels lesquelles"
    " auquel duquel est-ce suis es sommes êtes étais était étaient étions serai sera serait"
    " seront soit soient fut furent être étant ai as avons avez ont avais avait avaient aura"
    " aurait aient ait eu avoir ayant peux peut pouvons pouvez peuvent pouvait pourrait pourra"
    " pouvoir dois doit devons devez doivent devait devrait devoir veux veut voulons voulez"
    " veulent voulait voudrais voudrait vouloir faut fallait faudra fais fait faisons faites"
    " font faire faisait va vais vont aller allez à après avant chez contre depuis derrière dès"
    " devant durant entre envers hors jusque jusqu malgré parmi pendant sans sauf selon sous"
    " vers via afin ainsi alors car comme donc lorsque mais ni or puisque puis quoique tandis"
    " très trop peu beaucoup moins aussi encore toujours jamais déjà ici là oui non qu c j m n s"
    " t bien merci plaît plait monsieur madame mme bonjour",
    "it": "bisogna io tu lui lei noi voi loro egli essa essi mi ti ci vi me te sé ne mi/o/a/ei/e"
    " tu/o/a tuoi tue su/o/a suoi sue nostr/o/a/i/e vostr/o/a/i/e quest/o/a/i/e quel/la/le/li/lo"
    " quei quegli stess/o/a/i/e tal/e/i altr/o/a/i/e ogni ognuno alcun/o/a/i/e nessun/o/a"
    " qualche qualcuno qualcosa niente nulla tutt/o/a/i/e molt/o/a/i/e poc/o/a poch/i/e"
    " tant/o/a/i/e troppo quant/o/a/i/e cosa cui dov'è dov cos com'è com sei siamo siete era/no"
    " eri fu furono sarà sarebbe sia siano essere stat/o/a/i/e ho hai ha abbiamo avete hanno"
    " avevo aveva/no avrà avere avuto posso puoi può possiamo potete possono poteva potrebbe"
    " potere devo devi deve dobbiamo dovete devono doveva dovrebbe dovere voglio vuoi vuole"
    " vogliamo vogliono vorrei volere faccio fa fai fanno fare c'è vado va vanno a ad dal dallo"
    " dall dalla dai dagli dalle dello dell degli nello nell nei negli nelle sul sullo sull"
    " sulla sui sugli sulle allo all ai agli alle tra fra verso senza sotto sopra contro durante"
    " dentro fuori dopo prima presso secondo ed oppure né però perciò quindi dunque mentre"
    " poiché se sebbene affinché così già ancora sempre mai solo meno qui qua lì là ora sì no"
    " grazie favore prego signor/e/a buongiorno",
    "pt": "eu tu ele ela nós vós eles elas você/s me te lhe/s vos mim ti si meu/s minha/s teu/s"
    " tua/s seus suas noss/o/a/os/as vosso este esta estes estas isto esse essa esses essas isso"
    " aquele/s aquela/s aquilo deste desta disto desse dessa neste nesta nesse nessa"
    " mesm/o/a/os/as outr/o/a/os/as tod/o/a/os/as tudo muit/o/a/os/as pouc/o/a/os/as algum/a/as"
    " alguns nenhum/a cada tal tais tant/o/a/os/as qualquer nada ninguém algo alguém quant/a/as"
    " cujo aonde porquê porque sou és somos era/m fui foram seja/m sido ser sendo estou estamos"
    " estão estar estava/m esteve tenho tem têm temos ter tinha/m teve há haver havia posso"
    " pode/m podemos poder podia poderia devo deve/m devemos dever devia deveria quero quer"
    " querem queremos querer queria preciso precisa/m faço faz fazem fazer fez vai vou vão ir"
    " pelo/s pela/s num numa dum duma ante após até contra desde durante entre perante sem sob"
    " sobre nem pois portanto porém embora enquanto assim já ainda aqui ali lá tão menos só"
    " sempre nunca sim depois antes agora então favor obrigado obrigada senhor/a sr sra dona olá",
    "nl": "ik jij je jou hij zij ze wij we jullie u hem haar hun ons mij me mijn jouw uw onze"
    " zich zichzelf dit zo'n zulke ben bent was waren geweest heb hebt had hadden gehad word"
    " werden geworden zal zult zullen zou zouden kun kunt kunnen kon konden mag mogen mocht"
    " mochten moet moeten moest moesten wil wilt willen wilde wilden hoef/t hoeven laat laten"
    " doe/t doen deed gaat gaan maakt maken heet heten geeft geven krijg/t krijgen zit staat"
    " wiens welk waarheen waarin waarmee waarvan waarvoor hoeveel hoelang alle alles ander/e"
    " iemand niemand iets niets elk/e ieder/e enkele sommige veel weinig meer meest geen zelf"
    " zelfde dan maar want dus omdat hoewel terwijl zodat tenzij sinds voordat nadat noch af"
    " achter binnen boven buiten in langs na naast om onder rond tegen tijdens tot tussen vanaf"
    " volgens vóór zonder erg heel hier daar nu nog al toch zo zeer alleen altijd nooit ja nee"
    " alstublieft graag bedankt dank meneer mevrouw heer hallo",
    "sv": "du han hon ni dem mig dig sig honom henne oss er min mitt mina din ditt dina sin sitt"
    " sina hans hennes vår vårt våra ert era deras denna detta dessa sådan sådana någon något"
    " några ingen inget inga all alla allt annan annat andra varje själv samma mycket många mer"
    " mest vara varit blir bli blev blivit ha hade haft ska skall skulle kunde kunnat vill ville"
    " måste bör borde får få fick gör göra gjorde heter vilket vems varifrån vart hurdan men"
    " utan samt eftersom medan innan då än under över efter före genom hos mellan mot ur utanför"
    " upp ner ut in här där nu också bara ej aldrig alltid redan ja nej tack snälla herr fru hej",
    "no": "du han hun dere dem meg deg seg ham henne oss min mitt mine di din ditt dine sin sitt"
    " sine hans hennes vår vårt våre deres denne dette disse slik noen noe ingen alle alt annen"
    " annet andre hver hvert selv samme mye mange mer mest være var vært bli blitt hadde hatt"
    " skal skulle kunne vil ville må måtte bør burde får få fikk gjør gjøre gjorde heter hvilket"
    " hvilke hvorfor hvorvidt hvis men fordi mens enn da under over før gjennom hos mellom mot"
    " uten ut inn opp ned om her der nå også bare aldri alltid ja nei takk vennligst herr fru"
    " hei",
    "fi": "minä sinä me te he minun sinun hänen meidän teidän heidän minut sinut hänet minua"
    " sinua häntä meitä teitä heitä minulle sinulle hänelle meille teille heille minulla sinulla"
    " hänellä meillä tuo tuon nämä nuo ne sitä siitä siinä siihen sillä sille niiden näiden"
    " tässä tästä tähän olen olet olemme olette olin olit olivat ollut olla olisi olisivat en et"
    " emme ette eivät voin voit voimme voivat voiko voisi pitää pitäisi täytyy täytyi saa saan"
    " saako saavat haluan haluaa tehdä tekee onko eikö ketkä kenen ketä kenelle minkä mille"
    " millä minne mistä mihin miksi montako paljonko kuinka millainen jonka jossa josta johon"
    " joita jotta koska vaikka sekä eli vai kunnes ennen jälkeen kanssa ilman yli alle läpi"
    " varten vielä jo vain nyt aina hyvin paljon vähän kaikki joku jokin jokainen muu muut itse"
    " sama kyllä kiitos hyvä herra rouva hei",
    "hu": "én te ő ti ők engem téged őt minket titeket őket nekem neked neki nekünk nekik enyém"
    " tiéd övé ezt ezek azok ennek annak ebben abban erre arra ettől attól ilyen olyan vagyok"
    " vagyunk vannak voltam voltak volna lesz lesznek lenne legyen lenni nincs nincsenek sem"
    " kellett kellene tud tudok tudunk lehetett szabad akar akarok szeretne szeretném kit kinek"
    " kié mit minek miért honnan hová hova hány hányadik mennyi mennyibe melyek milyen mióta"
    " meddig ahol aki akik ami amely amelyek amikor mivel mert hanem pedig illetve azonban bár"
    " akkor így úgy itt ott most még nagyon sok kevés minden mindenki valaki valami senki semmi"
    " más másik maga saját után előtt alatt fölött között mellett nélkül szerint számára által"
    " felé óta igen köszönöm kérem úr asszony",
    "ro": "eu tu el ea noi voi ei ele mine tine mă te ne vă le îl îi mi ți meu mea mei mele tău"
    " ta tăi tale său sa săi sale nostru noastră noștri noastre vostru voastră lor lui"
    " acest/a/ea această aceasta aceste acești acel acea acele acei fiecare oricare alt/a/e alți"
    " altă tot toată toți toate mult/ă/e mulți puțin/ă nimeni nimic cineva ceva suntem sunteți"
    " ești era erau fi fie fiind am ai are avem aveți au avea avut aș ar pot poți poate putem"
    " putea trebuie trebuia vreau vrea vrem face fac facem cărui cărei căror cui cât/ă cați câți"
    " încotro deoarece că dacă deși însă iar ori nici ca decât asupra contra despre după fără"
    " între înainte lângă peste până sub spre într dintr acum aici acolo foarte doar deja încă"
    " da mulțumesc rog domnul doamna bună",
    "ca": "jo tu ell ella nosaltres vosaltres ells elles em et ens us li meu/s meva meves teu"
    " teva seu/s seva seves nostre/s nostra vostre/s vostra aquests aquestes aquell/a això allò"
    " cap cada altre/s altra tot/a/s totes molt/a/s moltes poc/a mateix/a algun/a quin/a/s"
    " quines quant/a/s perquè sóc som ets era eren sigui ser estat estic està estan estar tinc"
    " té tenim tenen tenir he has ha hem han havia haver hi puc pot podem poden poder podria cal"
    " dec deu devem vull vol volem volen voldria faig fa fan fer vaig van a contra des durant"
    " entre fins segons sense sobre sota ni sinó doncs ja encara aquí allà tan menys només"
    " sempre mai sí abans després ara si plau gràcies senyor/a",
    "cs": "já ty on ona ono my vy oni mě mne mi mně tě tebe ti jeho ho jemu mu ji jí jim nás nám"
    " vás vám můj moje má mého mému mým moji mou tvůj tvoje náš naše našeho váš vaše svůj své"
    " svou její jejich ten ta tento tato toto této tomto tyto tom tím tu takový takové jsem jsi"
    " jste jsme byla byli byly být budu budeš bude budeme budou bych mám máš máme máte mají mít"
    " měl měla mohu můžu můžeš může můžeme můžete mohou mohl musím musí musíme musíte muset smí"
    " smím smět chci chce chceme chtít chtěl kolik kam odkud proč čí koho komu kým čeho čemu čím"
    " který kterého kterém jaké jakého ale protože když pokud aby než tak také též ještě už jen"
    " velmi moc více méně všechno všechny vše každý někdo něco nikdo nic jiný sám bez k ke mezi"
    " nad ode pod podle proti před přes u ve za ze zda tady tam teď ano ne prosím děkuji pan"
    " pana paní",
    "pl": "jakie ja ty on ona ono my wy oni one mnie mi mną ciebie cię tobie ci jego go jemu mu"
    " jej ją nim nią nas nam nami was wam ich im nich siebie sobie mój"
    " moj/a/e/ego/emu/ej/ą/im/ich/imi twój twoj/a/e/ego/ej/ą/im/ich swój"
    " swoj/a/e/ego/ej/ą/im/ich nasz/a/e/ego/ej/ą/ym/ych wasz/a/e/ego/ej ten ta te tego temu tym"
    " tej tę tą tych tymi tamten tamta taki taka takie takiego inny inna inne innych każdy każda"
    " każde wszystko wszystkie wszyscy sam sama samo ktoś coś nikt nic jakiś jestem jesteś"
    " jesteśmy jesteście byłem byłam byli były być będę będzie będą będziemy byłoby mam masz ma"
    " mamy macie mają mieć miał miała mieli mogę możesz może możemy możecie mogą móc mógł mogła"
    " można muszę musisz musi musimy muszą musiał trzeba należy powinien powinna powinno powinni"
    " chcę chce chcemy chcieć chciałbym chciałabym wolno robi robić zostać został została"
    " zostały kogo komu kim czego czemu czym który którego której którym których którą jakiego"
    " jakiej jakich dokąd skąd dlaczego czyj/a/e czy ilu ale bo ponieważ gdy jeśli jeżeli aby"
    " żeby więc albo ani lecz choć niż także też jeszcze już tylko bardzo więcej mniej dużo mało"
    " tu tam teraz zawsze nigdy bez dzięki ku między nad obok pod podczas poza przed przeciw u"
    " według wobec wśród we ze za tak proszę dziękuję pan/a/i/u/ią panem państwo dzień dobry",
    "tr": "ben sen o biz siz onlar beni seni onu bizi sizi onları bana sana ona bize size onlara"
    " bende benim senin onun bizim sizin onların bunu bunun bunlar şu şunu kendi kendisi her hiç"
    " bazı bütün tüm hep başka aynı böyle şöyle öyle şey biri kimse kimin kime kimi neyi neden"
    " niçin niye nereye nereden neresi hangisi kaçıncı miyim misin mu mü mudur midir musun idi"
    " imiş oldu olur olacak olmak olması yok edilir eder etmek yapmak yapar lazım gerek gerekir"
    " gerekiyor gerekli istiyorum ister ama fakat ancak çünkü eğer hem yani ki diye göre karşı"
    " önce beri doğru dolayı üzere rağmen artık şimdi burada orada biraz az evet hayır lütfen"
    " teşekkürler bay bayan",
    "id": "saya aku kamu anda dia ia kami kita mereka beliau nya punya milik tersebut begitu"
    " seperti adanya ialah merupakan telah sudah belum sedang masih harus perlu boleh dapatkah"
    " bisakah apakah mau ingin kenapa mengapa kapankah siapakah dimana kemana darimana manakah"
    " bagaimanakah bukan jangan tetapi tapi namun karena sebab jika kalau bila agar supaya maka"
    " lalu sehingga maupun serta antara tentang terhadap kepada bagi pun lah hingga sampai sejak"
    " selama tanpa setelah sebelum sangat lebih paling banyak sedikit semua setiap para hanya"
    " saja lagi sini sana sekarang ya tolong mohon silakan terima kasih bapak ibu pak bu",
    "vi": "tôi ta chúng mình anh chị em ông bà nó họ mày cậu ấy kia đó nọ phải cần nên muốn bị"
    " bởi do đang sẽ vẫn còn rồi chưa chẳng đừng rất quá hơn nhất lắm cũng chỉ mỗi mọi cả tất"
    " vài nhưng mà nếu thì vì tại sao lúc mấy vậy hay cùng về ra vào lên xuống sau trước ngoài"
    " giữa qua đến tới vâng dạ xin cảm ơn vui lòng ạ",
    "lt": "aš tu mes jūs jie jos mano tavo jo mūsų jūsų jų man tau jam jai mums jums jiems mane"
    " tave jį ją šis ši šio šios šie tas ta to tos tie toks tokia kitas kita visi visas viskas"
    " kiekvienas esu esi esame esate bus buvau būti būtų turiu turi turime turite turėti turėjo"
    " galiu gali galime galite galėti reikia reikėtų privalo noriu nori ką kam kuo kieno kuris"
    " kuri kurie kurią kiek kodėl kokia koks kokie bei o nes jei jeigu nors kol todėl tik dar"
    " jau labai daug mažai be per po prie prieš pagal tarp virš dėl čia ten dabar prašau ačiū"
    " ponas ponia",
    "et": "mina sina tema meie teie nemad ma sa ta me te nad minu sinu mu su meid teid neid mind"
    " sind teda mulle sulle talle meile teile minul sinul meil selle sellest need nende olen"
    " oled oleme olete olid olla oleks olnud pole saan saab saavad saame pean peab peame peavad"
    " pidi võin võib võime võivad tahan tahab kelle keda kellele mille millest missugune milline"
    " mitu palju kust kuhu miks kas kumb sest ning ehk siis nagu kuni ilma läbi üle alla pärast"
    " enne vahel juures veel juba ainult väga kõik iga mõni keegi miski muu teine ise sama siin"
    " seal nüüd jah palun aitäh härra proua",
}
ALSO_ENGLISH = frozenset(
    """
    ali allen alt alta ama ami andre ara aura avant bare bay ben bent bin bis bus cal cap car
    contra dal dar dec deed dell devi dia dice dies dig dir doe dona eli elk ella encore end era
    eras face falls fan fare favor fins font hai ham han hans hay heel hem hon ind inn ins jam
    jed jen jim kia kit lei madame mag mal mane mei mer mere mia mig min mina mind mine mir mod
    mon monsieur nad nam ned nee nic notre nun ode ono pak pan pendant pod pole pot prima pun
    quest rein sale sam sans sao sea seal sean seine sense ser sera sim sino sit size ska sob
    solo soy stat sub sue sui sul tack tak tal tale tales tam tan tau tel ter tie tod tom ton
    tun vain via ville visas vol war welch wen wil wilde word
    """.split()
)
"""Function words that in an English question mean something else: they show no other language."""


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


def _with_endings(words: str) -> Iterator[str]:
    for stem, *endings in (word.split("/") for word in words.split()):
        yield from (stem, *(stem + ending for ending in endings))


STOP_WORDS = {
    code: words.union(_with_endings(_FURTHER_WORDS[code])) for code, words in FREQUENT_WORDS.items()
} | {"en": ENGLISH_STOP_WORDS}
"""Language code (ISO 639-1) → all function words."""


@cache
def stop_words_of(languages: tuple[str, ...]) -> frozenset[str]:
    """What is no content word in a task of these languages: English words are none in any.

    With spellings without marks: ``für`` is also ``fur`` and ``fuer``. A single letter without a
    mark may be the name of something in any language.
    """
    words = frozenset[str]().union(*(STOP_WORDS.get(language, ()) for language in languages))
    words |= {folded(word) for word in words} | {word.translate(_UMLAUTS) for word in words}
    return ENGLISH_STOP_WORDS.union(w for w in words if len(w) > 1 or not w.isascii())
